#include "device/gpu/cuda/nvrtc.h"

#include <fmt/format.h>
#include <nvrtc.h>
#include <russet/error.h>

#include <vector>

#include "base/digest.h"
#include "device/gpu/cuda/library.h"
#include "device/gpu/kernels.h"

namespace russet::cuda {
namespace {

constexpr const char* names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// NVRTC's functions under their names without "nvrtc".
struct Nvrtc {
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcGetErrorString) get_error_string;
  decltype(&::nvrtcCreateProgram) create_program;
  decltype(&::nvrtcDestroyProgram) destroy_program;
  decltype(&::nvrtcCompileProgram) compile_program;
  decltype(&::nvrtcGetProgramLogSize) get_program_log_size;
  decltype(&::nvrtcGetProgramLog) get_program_log;
  decltype(&::nvrtcGetCUBINSize) get_cubin_size;
  decltype(&::nvrtcGetCUBIN) get_cubin;
};

Nvrtc load_nvrtc() {
  const Library library(names);
  Nvrtc nvrtc{};
  library.load(nvrtc.version, "nvrtcVersion");
  library.load(nvrtc.get_error_string, "nvrtcGetErrorString");
  library.load(nvrtc.create_program, "nvrtcCreateProgram");
  library.load(nvrtc.destroy_program, "nvrtcDestroyProgram");
  library.load(nvrtc.compile_program, "nvrtcCompileProgram");
  library.load(nvrtc.get_program_log_size, "nvrtcGetProgramLogSize");
  library.load(nvrtc.get_program_log, "nvrtcGetProgramLog");
  library.load(nvrtc.get_cubin_size, "nvrtcGetCUBINSize");
  library.load(nvrtc.get_cubin, "nvrtcGetCUBIN");
  return nvrtc;
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = load_nvrtc();
  return loaded;
}

void check(nvrtcResult result) {
  if (result != NVRTC_SUCCESS) throw DeviceError(fmt::format("NVRTC: {}", nvrtc().get_error_string(result)));
}

/// 12080 is 12.8.
int version() {
  int major = 0;
  int minor = 0;
  check(nvrtc().version(&major, &minor));
  return major * 1000 + minor * 10;
}

/// Numbers as written (docs/devices/dialect.md): no contraction, subnormals kept, exactly rounded quotients and roots.
/// Emitted kernels hold variables that nobody reads, of which there need be no warning (177). The prelude is
/// precompiled once in a process, where NVRTC can.
std::vector<std::string> options_for(int capability) {
  constexpr int first_with_precompiled_headers = 12080;
  // Code for sm_90a runs on that capability alone, and has its warpgroups (prelude/cuda/warpgroups.h).
  std::vector<std::string> options{fmt::format("--gpu-architecture=sm_{}{}", capability, capability == 90 ? "a" : ""),
                                   "--std=c++20",
                                   "--device-as-default-execution-space",
                                   "--fmad=false",
                                   "--ftz=false",
                                   "--prec-div=true",
                                   "--prec-sqrt=true",
                                   "--no-source-include",
                                   "--minimal",
                                   "--diag-suppress=177",
                                   "--ptxas-options=--verbose"};
  if (version() >= first_with_precompiled_headers) options.emplace_back("--pch");
  return options;
}

/// The texts that the prelude includes.
struct Headers {
  std::vector<std::string> names;
  std::vector<std::string> texts;
};

Headers load_headers() {
  constexpr std::string_view folder = "prelude/";
  Headers headers;
  for (const gpu::KernelFile& file : gpu::kernel_files()) {
    if (!file.name.starts_with(folder)) continue;
    headers.names.emplace_back(file.name.substr(folder.size()));
    headers.texts.emplace_back(file.text);
  }
  return headers;
}

const Headers& headers() {
  static const Headers loaded = load_headers();
  return loaded;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  for (const std::string& string : strings) pointers.push_back(string.c_str());
  return pointers;
}

class Program {
 public:
  explicit Program(const std::string& source) {
    check(nvrtc().create_program(&program_, source.c_str(), "kernel", static_cast<int>(headers().names.size()),
                                 pointers_to(headers().texts).data(), pointers_to(headers().names).data()));
  }
  ~Program() { nvrtc().destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Cubin compile(const std::vector<std::string>& options) {
    const nvrtcResult result =
        nvrtc().compile_program(program_, static_cast<int>(options.size()), pointers_to(options).data());
    Cubin cubin;
    std::size_t size = 0;
    check(nvrtc().get_program_log_size(program_, &size));
    cubin.log.resize(size);
    check(nvrtc().get_program_log(program_, cubin.log.data()));
    if (result == NVRTC_ERROR_COMPILATION) throw CompileError(cubin.log);
    check(result);
    check(nvrtc().get_cubin_size(program_, &size));
    cubin.code.resize(size);
    check(nvrtc().get_cubin(program_, cubin.code.data()));
    return cubin;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string source_of(const gpu::CompilationUnit& unit) { return "#include \"cuda.h\"\n" + unit.text; }

std::string compiler_name(int capability) {
  std::uint64_t prelude = base::digest_start;
  for (const std::string& text : headers().texts) prelude = base::digest(text, prelude);
  std::string name = fmt::format("nvrtc {} {:016x}", version(), prelude);
  for (const std::string& option : options_for(capability)) name += " " + option;
  return name;
}

Cubin compile(const std::string& source, int capability) { return Program(source).compile(options_for(capability)); }

}  // namespace russet::cuda
