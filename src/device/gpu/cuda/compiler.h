#pragma once
// Compiler: kernel text to pipelines.
#include <memory>
#include <string>
#include <vector>

#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cubins.h"
#include "device/gpu/cuda/pipeline.h"
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

class Kernel final : public Pipeline {
 public:
  /// Throws DeviceError if the module has no such kernel, or the GPU not so much memory for a threadgroup.
  Kernel(std::shared_ptr<const Module> module, const gpu::EntryPoint& entry);
  void start(const Grid& grid, std::span<void*> arguments, CUstream stream) const override;
  CUgraphNode add_to(CUgraph graph, std::span<const CUgraphNode> before, const Grid& grid,
                     std::span<void*> arguments) const override;

 private:
  std::shared_ptr<const Module> module_;
  CUfunction function_;
  std::uint32_t large_memory_;  // that a launch asks for
};

/// Thread-safe.
class Compiler {
 public:
  /// Throws DeviceError if there is no NVRTC.
  explicit Compiler(const Context& context)
      : context_(context), compilers_(context.capability()), cubins_(cubin_folder(), compilers_) {}

  /// Pipelines of the unit's entries, in order. Throws DeviceError.
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) const;
  /// What it compiles with: NVRTC's version and options.
  const std::string& name() const { return compilers_.name(); }

 private:
  const Context& context_;
  Compilers compilers_;
  Cubins cubins_;
};

}  // namespace russet::cuda
