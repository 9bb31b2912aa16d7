#include "kernels/nvrtc.h"

#include <stdexcept>

#ifdef RUSSET_CUDA

#include <russet/error.h>

#include "device/gpu/cuda/nvrtc.h"

namespace russet::kernels {
namespace {

constexpr int capability = 90;

}  // namespace

std::string nvrtc_missing() {
  try {
    cuda::compiler_name(capability);
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

Cubin compile_for_cuda(const gpu::CompilationUnit& unit) {
  auto [code, log] = cuda::compile(unit, capability);
  return {std::move(code), std::move(log)};
}

}  // namespace russet::kernels

#else

namespace russet::kernels {

std::string nvrtc_missing() { return "CUDA's headers were not there when russet was built"; }
Cubin compile_for_cuda(const gpu::CompilationUnit&) { throw std::runtime_error(nvrtc_missing()); }

}  // namespace russet::kernels

#endif
