#pragma once
// Compiler: kernel text to pipelines, by Metal's compiler, with what it compiled kept on disk.
#include <filesystem>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "device/gpu/driver/kernel_cache.h"
#include "device/gpu/metal/gpu.h"

namespace russet::metal {

struct Pipeline final : gpu::Pipeline {
  NS::SharedPtr<MTL::ComputePipelineState> state;
  std::string name;
  std::uint32_t threads = 0;  // the most that a threadgroup may have
};

/// An archive on disk (a file a unit: GPU, macOS's build and text make its name) holds pipelines for the next process.
/// An archive that cannot be read is made anew. Thread-safe.
class Compiler {
 public:
  /// `archives`: the folder of archives; none are kept if it is empty.
  Compiler(const Gpu& gpu, std::filesystem::path archives);

  /// Pipelines of the unit's entries, in order. Throws DeviceError.
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) const;

 private:
  NS::SharedPtr<MTL::Library> library_of(const gpu::CompilationUnit& unit, const std::string& source) const;
  gpu::PipelinePtr pipeline_of(MTL::Library& library, const gpu::EntryPoint& entry, MTL::BinaryArchive* archive,
                               bool add) const;
  /// The archive of a text, empty if there is none on disk; nullptr if archives do not work.
  NS::SharedPtr<MTL::BinaryArchive> open_archive(const std::string& name, bool& fresh) const;
  void keep_archive(MTL::BinaryArchive& archive, const std::string& name) const;

  const Gpu& gpu_;
  base::DiskCache archives_;
};

/// Where archives of this user lie; empty if there is no such folder.
std::filesystem::path archive_folder();

}  // namespace russet::metal
