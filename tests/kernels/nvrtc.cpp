#include "kernels/nvrtc.h"

#include <stdexcept>

#ifdef RUSSET_CUDA

#include <russet/error.h>

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

cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit) { return compile_for_cuda(cuda::source_of(unit)); }
cuda::Cubin compile_for_cuda(const std::string& source) { return cuda::compile(source, capability); }

}  // namespace russet::kernels

#else

namespace russet::kernels {

std::string nvrtc_missing() { return "CUDA's headers were not there when russet was built"; }
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit&) { throw std::runtime_error(nvrtc_missing()); }
cuda::Cubin compile_for_cuda(const std::string&) { throw std::runtime_error(nvrtc_missing()); }

}  // namespace russet::kernels

#endif
