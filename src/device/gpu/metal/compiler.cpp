#include "device/gpu/metal/compiler.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "base/digest.h"
#include "base/log.h"
#include "device/gpu/kernels.h"
#include "device/gpu/library.h"
#include "device/gpu/metal/hooks.h"

namespace russet::metal {
namespace {

/// Of all archives.
constexpr std::uint64_t most_bytes = std::uint64_t{512} << 20;

const base::Log& log() {
  static const base::Log channel("kernels");
  return channel;
}

std::string source_of(const gpu::CompilationUnit& unit) {
  return fmt::format("{}{}{}", gpu::kernel_text("prelude/metal.h"), end_of_prelude, unit.text);
}

/// Strict arithmetic: no reassociation, no approximate functions, and subnormals kept where Metal can be told to.
NS::SharedPtr<MTL::CompileOptions> compile_options(const Gpu& gpu) {
  auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  options->setLanguageVersion(MTL::LanguageVersion3_1);
  if (gpu.macos >= 15) {
    options->setMathMode(MTL::MathModeSafe);
    options->setMathFloatingPointFunctions(MTL::MathFloatingPointFunctionsPrecise);
  } else {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    options->setFastMathEnabled(false);
#pragma clang diagnostic pop
  }
  return options;
}

/// Names a file, whose content Metal compares with the functions asked for.
std::string archive_name(const Gpu& gpu, const std::string& source) {
  return base::digest_name(source, fmt::format("{}|{}", gpu.name, gpu.system)) + ".metalarchive";
}

}  // namespace

std::filesystem::path archive_folder() {
  const std::filesystem::path folder = base::cache_folder();
  return folder.empty() ? folder : folder / "metal";
}

Compiler::Compiler(const Gpu& gpu, std::filesystem::path archives)
    : gpu_(gpu), archives_(std::move(archives), most_bytes) {}

std::vector<gpu::PipelinePtr> Compiler::compile(const gpu::CompilationUnit& unit) const {
  const PoolScope pool;
  const std::string source = source_of(unit);
  const auto library = library_of(unit, source);
  const std::string name = archive_name(gpu_, source);
  bool fresh = false;
  const auto archive = archives_.keeps() ? open_archive(name, fresh) : NS::SharedPtr<MTL::BinaryArchive>();
  std::vector<gpu::PipelinePtr> pipelines;
  for (const gpu::EntryPoint& entry : unit.entry_points)
    pipelines.push_back(pipeline_of(*library.get(), entry, archive.get(), fresh));
  if (archive && fresh) keep_archive(*archive.get(), name);
  return pipelines;
}

NS::SharedPtr<MTL::Library> Compiler::library_of(const gpu::CompilationUnit& unit, const std::string& source) const {
  NS::Error* error = nullptr;
  auto library = NS::TransferPtr(gpu_.device->newLibrary(string(source), compile_options(gpu_).get(), &error));
  if (library) return library;
  throw DeviceError(fmt::format("mps: Metal's compiler refuses the kernels {}: {}", gpu::names_of(unit), text(error)));
}

namespace {

NS::SharedPtr<MTL::Function> function_of(MTL::Library& library, const gpu::EntryPoint& entry) {
  auto function = NS::TransferPtr(library.newFunction(string(entry.name)));
  if (function) return function;
  throw DeviceError(fmt::format("mps: the text of the kernel {} does not define it", entry.name));
}

}  // namespace

gpu::PipelinePtr Compiler::pipeline_of(MTL::Library& library, const gpu::EntryPoint& entry, MTL::BinaryArchive* archive,
                                       bool add) const {
  const auto function = function_of(library, entry);
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  descriptor->setLabel(string(entry.name));
  descriptor->setComputeFunction(function.get());
  descriptor->setThreadGroupSizeIsMultipleOfThreadExecutionWidth(true);
  descriptor->setMaxTotalThreadsPerThreadgroup(entry.threads);
  NS::Error* error = nullptr;
  if (archive != nullptr && !add) descriptor->setBinaryArchives(NS::Array::array(archive));
  auto state =
      NS::TransferPtr(gpu_.device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  if (!state) throw DeviceError(fmt::format("mps: no pipeline for the kernel {}: {}", entry.name, text(error)));
  if (state->maxTotalThreadsPerThreadgroup() < entry.threads || state->threadExecutionWidth() != 32) {
    throw DeviceError(
        fmt::format("mps: the kernel {} needs threadgroups of {} threads in simdgroups of 32; this GPU runs "
                    "it with {} at most, in simdgroups of {}",
                    entry.name, entry.threads, state->maxTotalThreadsPerThreadgroup(), state->threadExecutionWidth()));
  }
  if (archive != nullptr && add) archive->addComputePipelineFunctions(descriptor.get(), &error);
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->state = std::move(state);
  pipeline->name = entry.name;
  pipeline->threads = entry.threads;
  return pipeline;
}

NS::SharedPtr<MTL::BinaryArchive> Compiler::open_archive(const std::string& name, bool& fresh) const {
  const auto descriptor = NS::TransferPtr(MTL::BinaryArchiveDescriptor::alloc()->init());
  NS::Error* error = nullptr;
  if (archives_.holds(name)) {
    descriptor->setUrl(file_url(archives_.path(name).string()));
    if (auto archive = NS::TransferPtr(gpu_.device->newBinaryArchive(descriptor.get(), &error))) {
      archives_.touch(name);
      return archive;
    }
    archives_.refuse(name, fmt::format("is no archive: {}", text(error)));
    descriptor->setUrl(nullptr);
  }
  fresh = true;
  return NS::TransferPtr(gpu_.device->newBinaryArchive(descriptor.get(), &error));
}

void Compiler::keep_archive(MTL::BinaryArchive& archive, const std::string& name) const {
  try {
    archives_.put(name, [&](const std::filesystem::path& fresh) {
      NS::Error* error = nullptr;
      if (!archive.serializeToURL(file_url(fresh.string()), &error)) throw FileError(text(error));
    });
  } catch (const FileError& error) {
    log()("the archive {} is not kept: {}", name, error.what());
  }
}

}  // namespace russet::metal
