#include "device/gpu/cuda/compiler.h"

#include <fmt/format.h>

namespace russet::cuda {

Module::Module(const Context& context, const std::string& code) : context_(context) {
  context_.enter();
  check(api().module_load_data(&module_, code.data()), "loading machine code");
}

// What was launched may still run: a plan can go while its last run is on the GPU.
Module::~Module() {
  if (!context_.try_enter()) return;
  api().ctx_synchronize();
  api().module_unload(module_);
}

CUfunction Module::find(const std::string& name) const {
  CUfunction function = nullptr;
  context_.enter();
  check(api().module_get_function(&function, module_, name.c_str()), fmt::format("finding the kernel {}", name));
  return function;
}

Kernel::Kernel(std::shared_ptr<const Module> module, const gpu::EntryPoint& entry)
    : module_(std::move(module)), function_(module_->find(entry.name)), large_memory_(entry.large_memory) {
  if (large_memory_ == 0) return;
  check(api().func_set_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 static_cast<int>(large_memory_)),
        fmt::format("asking for {} bytes of a core's memory for the kernel {}", large_memory_, entry.name));
}

void Kernel::start(const Grid& grid, std::span<void*> arguments, CUstream stream) const {
  const auto& [x, y, z] = grid.blocks;
  check(api().launch_kernel(function_, x, y, z, grid.threads, 1, 1, large_memory_, stream, arguments.data(), nullptr),
        "launching a kernel");
}

CUgraphNode Kernel::add_to(CUgraph graph, std::span<const CUgraphNode> before, const Grid& grid,
                           std::span<void*> arguments) const {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = function_;
  parameters.gridDimX = grid.blocks[0];
  parameters.gridDimY = grid.blocks[1];
  parameters.gridDimZ = grid.blocks[2];
  parameters.blockDimX = grid.threads;
  parameters.blockDimY = 1;
  parameters.blockDimZ = 1;
  parameters.sharedMemBytes = large_memory_;
  parameters.kernelParams = arguments.data();
  CUgraphNode node = nullptr;
  check(api().graph_add_kernel_node(&node, graph, before.data(), before.size(), &parameters), "adding to a graph");
  return node;
}

std::vector<gpu::PipelinePtr> Compiler::compile(const gpu::CompilationUnit& unit) const {
  const auto module = std::make_shared<const Module>(context_, cubins_.of(unit));
  std::vector<gpu::PipelinePtr> pipelines;
  for (const gpu::EntryPoint& entry : unit.entry_points) {
    pipelines.push_back(std::make_shared<Kernel>(module, entry));
  }
  return pipelines;
}

}  // namespace russet::cuda
