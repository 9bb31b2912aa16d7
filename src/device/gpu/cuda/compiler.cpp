#include "device/gpu/cuda/compiler.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "base/digest.h"
#include "base/log.h"

namespace russet::cuda {
namespace {

/// Of all machine code.
constexpr std::uint64_t most_bytes = std::uint64_t{512} << 20;

const base::Log& log() {
  static const base::Log channel("kernels");
  return channel;
}

std::string names_of(const gpu::CompilationUnit& unit) {
  std::string names;
  for (const gpu::EntryPoint& entry : unit.entry_points) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

}  // namespace

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

std::filesystem::path cubin_folder() {
  const std::filesystem::path folder = base::cache_folder();
  return folder.empty() ? folder : folder / "cuda";
}

Compiler::Compiler(const Context& context, std::filesystem::path cubins)
    : context_(context), cubins_(std::move(cubins), most_bytes) {}

std::vector<gpu::PipelinePtr> Compiler::compile(const gpu::CompilationUnit& unit) const {
  const auto module = std::make_shared<const Module>(context_, code_of(unit));
  std::vector<gpu::PipelinePtr> pipelines;
  for (const gpu::EntryPoint& entry : unit.entry_points) {
    auto pipeline = std::make_shared<Pipeline>();
    pipeline->module = module;
    pipeline->function = module->find(entry.name);
    pipelines.push_back(std::move(pipeline));
  }
  return pipelines;
}

std::string Compiler::code_of(const gpu::CompilationUnit& unit) const {
  const std::string name = base::digest_name(source_of(unit), compiler_name(context_.capability())) + ".cubin";
  if (cubins_.keeps()) {
    if (std::optional<std::string> known = cubins_.read(name)) {
      cubins_.touch(name);
      return *std::move(known);
    }
  }
  Cubin cubin;
  try {
    cubin = russet::cuda::compile(unit, context_.capability());
  } catch (const CompileError& error) {
    throw DeviceError(fmt::format("cuda: NVRTC refuses the kernels {}: {}", names_of(unit), error.what()));
  }
  if (cubins_.keeps()) keep(name, cubin.code);
  return std::move(cubin.code);
}

void Compiler::keep(const std::string& name, const std::string& code) const {
  try {
    cubins_.put(name, code);
  } catch (const FileError& error) {
    log()("the machine code {} is not kept: {}", name, error.what());
  }
}

}  // namespace russet::cuda
