#include "kernels/nvrtc.h"

#include <stdexcept>

#ifdef RUSSET_CUDA

#include <russet/error.h>

namespace russet::kernels {

std::string nvrtc_missing() {
  try {
    constexpr int capability = 90;
    cuda::compiler_name(capability);
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit, int capability) {
  return compile_for_cuda(cuda::source_of(unit), capability);
}
cuda::Cubin compile_for_cuda(const std::string& source, int capability) { return cuda::compile(source, capability); }

}  // namespace russet::kernels

#else

namespace russet::kernels {

std::string nvrtc_missing() { return "CUDA's headers were not there when russet was built"; }
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit&, int) { throw std::runtime_error(nvrtc_missing()); }
cuda::Cubin compile_for_cuda(const std::string&, int) { throw std::runtime_error(nvrtc_missing()); }

}  // namespace russet::kernels

#endif
