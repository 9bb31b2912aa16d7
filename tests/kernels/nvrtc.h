#pragma once
// CUDA's compiler, where the build and the machine have it.
#include <string>

#include "device/gpu/cuda/nvrtc.h"

namespace russet::kernels {

/// Why there is no compiler; empty if there is one.
std::string nvrtc_missing();

/// As machine code, by default sm_90's, a unit of kernels in the dialect or a source in CUDA. Throws std::runtime_error
/// with the compiler's words. Thread-safe.
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit, int capability = 90);
cuda::Cubin compile_for_cuda(const std::string& source, int capability = 90);

}  // namespace russet::kernels
