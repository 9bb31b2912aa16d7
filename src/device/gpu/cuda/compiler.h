#pragma once
// Compiler: kernel text to pipelines.
#include <memory>
#include <string>
#include <vector>

#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cubins.h"
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

/// Thread-safe.
class Compiler {
 public:
  /// Throws DeviceError if there is no NVRTC.
  explicit Compiler(const Context& context) : context_(context), cubins_(cubin_folder(), context.capability()) {}

  /// Pipelines of the unit's entries, in order. Throws DeviceError.
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) const;
  /// What it compiles with: NVRTC's version and options.
  const std::string& name() const { return cubins_.compiler(); }

 private:
  const Context& context_;
  Cubins cubins_;
};

}  // namespace russet::cuda
