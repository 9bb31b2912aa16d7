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

std::vector<gpu::PipelinePtr> Compiler::compile(const gpu::CompilationUnit& unit) const {
  const auto module = std::make_shared<const Module>(context_, cubins_.of(unit));
  std::vector<gpu::PipelinePtr> pipelines;
  for (const gpu::EntryPoint& entry : unit.entry_points) {
    auto pipeline = std::make_shared<Pipeline>();
    pipeline->module = module;
    pipeline->function = module->find(entry.name);
    pipelines.push_back(std::move(pipeline));
  }
  return pipelines;
}

}  // namespace russet::cuda
