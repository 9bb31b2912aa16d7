#include "kernels/nvrtc.h"

#include <fmt/format.h>

#include "device/gpu/kernels.h"

#ifdef RUSSET_NVRTC

#include <nvrtc.h>

namespace russet::kernels {
namespace {

/// Numbers as written (docs/devices/dialect.md): no contraction, subnormals kept, exactly rounded quotients and roots.
/// Emitted kernels hold variables that nobody reads, of which there need be no warning (177). The prelude is
/// precompiled once in a process.
constexpr const char* options[] = {"--gpu-architecture=sm_90",
                                   "--std=c++20",
                                   "--device-as-default-execution-space",
                                   "--fmad=false",
                                   "--ftz=false",
                                   "--prec-div=true",
                                   "--prec-sqrt=true",
                                   "--no-source-include",
                                   "--minimal",
                                   "--diag-suppress=177",
                                   "--pch",
                                   "--ptxas-options=--verbose"};

constexpr std::string_view folder = "prelude/";

class Program {
 public:
  Program(const std::string& source, const std::vector<const char*>& headers, const std::vector<const char*>& names) {
    check(nvrtcCreateProgram(&program_, source.c_str(), "kernel", static_cast<int>(headers.size()), headers.data(),
                             names.data()));
  }
  ~Program() { nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Cubin compile() {
    const nvrtcResult result = nvrtcCompileProgram(program_, static_cast<int>(std::size(options)), options);
    Cubin cubin;
    std::size_t size = 0;
    check(nvrtcGetProgramLogSize(program_, &size));
    cubin.log.resize(size);
    check(nvrtcGetProgramLog(program_, cubin.log.data()));
    if (result != NVRTC_SUCCESS) throw std::runtime_error(cubin.log);
    check(nvrtcGetCUBINSize(program_, &size));
    cubin.code.resize(size);
    check(nvrtcGetCUBIN(program_, cubin.code.data()));
    return cubin;
  }

 private:
  static void check(nvrtcResult result) {
    if (result != NVRTC_SUCCESS) throw std::runtime_error(fmt::format("NVRTC: {}", nvrtcGetErrorString(result)));
  }
  nvrtcProgram program_ = nullptr;
};

}  // namespace

bool has_nvrtc() { return true; }

Cubin compile_for_cuda(const gpu::CompilationUnit& unit) {
  std::vector<std::string> kept;  // ended by zeros
  for (const gpu::KernelFile& text : gpu::kernel_files()) {
    if (!text.name.starts_with(folder)) continue;
    kept.emplace_back(text.name.substr(folder.size()));
    kept.emplace_back(text.text);
  }
  std::vector<const char*> names;
  std::vector<const char*> headers;
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    names.push_back(kept[i].c_str());
    headers.push_back(kept[i + 1].c_str());
  }
  Program program("#include \"cuda.h\"\n" + unit.text, headers, names);
  return program.compile();
}

}  // namespace russet::kernels

#else

namespace russet::kernels {

bool has_nvrtc() { return false; }
Cubin compile_for_cuda(const gpu::CompilationUnit&) { throw std::runtime_error("built without CUDA's toolkit"); }

}  // namespace russet::kernels

#endif
