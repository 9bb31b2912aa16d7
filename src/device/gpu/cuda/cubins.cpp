#include "device/gpu/cuda/cubins.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "base/digest.h"
#include "base/log.h"
#include "device/gpu/cuda/nvrtc.h"
#include "device/gpu/library.h"

namespace russet::cuda {
namespace {

/// Of all machine code.
constexpr std::uint64_t most_bytes = std::uint64_t{512} << 20;

const base::Log& log() {
  static const base::Log channel("kernels");
  return channel;
}

/// What a file begins with: CUDA reads code without asking how long it is, so damaged code must not come to it.
std::string seal_of(std::string_view code) { return base::digest_name(code, "cubin"); }

std::string compiled(const gpu::CompilationUnit& unit, Compilers& compilers) {
  try {
    return compilers.compile(source_of(unit)).code;
  } catch (const CompileError& error) {
    throw DeviceError(fmt::format("cuda: NVRTC refuses the kernels {}: {}", gpu::names_of(unit), error.what()));
  }
}

}  // namespace

std::filesystem::path cubin_folder() {
  const std::filesystem::path folder = base::cache_folder();
  return folder.empty() ? folder : folder / "cuda";
}

Cubins::Cubins(std::filesystem::path folder, Compilers& compilers)
    : files_(std::move(folder), most_bytes), compilers_(compilers) {}

std::string Cubins::of(const gpu::CompilationUnit& unit) const {
  if (!files_.keeps()) return compiled(unit, compilers_);
  const std::string name = base::digest_name(source_of(unit), compilers_.name()) + ".cubin";
  std::string code = known(name);
  if (!code.empty()) return code;
  code = compiled(unit, compilers_);
  keep(name, code);
  return code;
}

/// Empty if there is no such file.
std::string Cubins::known(const std::string& name) const {
  const std::optional<std::string> content = files_.read(name);
  if (!content) return {};
  const std::size_t sealed = std::min(seal_of("").size(), content->size());
  std::string code = content->substr(sealed);
  if (code.empty() || content->substr(0, sealed) != seal_of(code)) {
    files_.refuse(name, "is damaged");
    return {};
  }
  files_.touch(name);
  return code;
}

void Cubins::keep(const std::string& name, const std::string& code) const {
  try {
    files_.put(name, seal_of(code) + code);
  } catch (const FileError& error) {
    log()("the machine code {} is not kept: {}", name, error.what());
  }
}

}  // namespace russet::cuda
