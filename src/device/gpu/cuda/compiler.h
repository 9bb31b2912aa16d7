#pragma once
// Compiler: kernel text to pipelines, by NVRTC, with the machine code that it made kept on disk.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/nvrtc.h"
#include "device/gpu/driver/kernel_cache.h"

namespace russet::cuda {

/// Machine code that CUDA has loaded.
class Module {
 public:
  /// Throws DeviceError.
  Module(const Context& context, const std::string& code);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Throws DeviceError if there is no such kernel.
  CUfunction find(const std::string& name) const;

 private:
  const Context& context_;
  CUmodule module_ = nullptr;
};

struct Pipeline final : gpu::Pipeline, std::enable_shared_from_this<Pipeline> {
  std::shared_ptr<const Module> module;
  CUfunction function = nullptr;
};

/// A file a unit: text, GPU, NVRTC's version and its options make its name. Thread-safe.
class Compiler {
 public:
  /// `cubins`: the folder of machine code; none is kept if it is empty.
  Compiler(const Context& context, std::filesystem::path cubins);

  /// Pipelines of the unit's entries, in order. Throws DeviceError.
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) const;

 private:
  std::string code_of(const gpu::CompilationUnit& unit) const;
  void keep(const std::string& name, const std::string& code) const;

  const Context& context_;
  base::DiskCache cubins_;
};

/// Where machine code of this user lies; empty if there is no such folder.
std::filesystem::path cubin_folder();

}  // namespace russet::cuda
