#pragma once
// Compiler: kernel text to pipelines, by Metal's compiler, several texts at once, with what was compiled before kept.
#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/disk_cache.h"
#include "device/gpu/launch.h"
#include "device/gpu/metal/gpu.h"

namespace russet::metal {

struct Pipeline final : gpu::Pipeline {
  NS::SharedPtr<MTL::ComputePipelineState> state;
  std::string name;
  std::uint32_t threads = 0;  // the most that a threadgroup may have
};
using PipelinePtr = std::shared_ptr<const Pipeline>;

/// Pipelines are known by their unit's text as long as one of them is in use, and by an archive on disk (a file a unit:
/// GPU, macOS's build and text make its name) for the next process. An archive that cannot be read is made anew.
/// Thread-safe.
class Compiler {
 public:
  /// `archives`: the folder of archives; none are kept if it is empty.
  Compiler(const Gpu& gpu, std::filesystem::path archives);

  /// Pipelines of all entries of all units, in order; at most 8 units are compiled at once. Throws DeviceError.
  std::vector<PipelinePtr> build(std::span<const gpu::CompilationUnit> units);

 private:
  struct Known {
    gpu::CompilationUnit unit;
    std::vector<std::weak_ptr<const Pipeline>> pipelines;
  };

  std::vector<PipelinePtr> find(const gpu::CompilationUnit& unit);
  void remember(const gpu::CompilationUnit& unit, const std::vector<PipelinePtr>& pipelines);
  std::vector<PipelinePtr> compile(const gpu::CompilationUnit& unit) const;
  NS::SharedPtr<MTL::Library> library_of(const gpu::CompilationUnit& unit, const std::string& source) const;
  PipelinePtr pipeline_of(MTL::Library& library, const gpu::EntryPoint& entry, MTL::BinaryArchive* archive,
                          bool add) const;
  /// The archive of a text, empty if there is none on disk; nullptr if archives do not work.
  NS::SharedPtr<MTL::BinaryArchive> open_archive(const std::string& name, bool& fresh) const;
  void keep_archive(MTL::BinaryArchive& archive, const std::string& name) const;

  const Gpu& gpu_;
  base::DiskCache archives_;
  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Known> known_;  // by a hash of the text
};

/// Where archives of this user lie; empty if there is no such folder.
std::filesystem::path archive_folder();

}  // namespace russet::metal
