#pragma once
// CUDA's compiler, where the build and the machine have it.
#include <string>

#include "device/gpu/cuda/nvrtc.h"

namespace russet::kernels {

/// Why there is no compiler; empty if there is one.
std::string nvrtc_missing();

/// As sm_90's machine code, a unit of kernels in the dialect or a source in CUDA. Throws std::runtime_error with the
/// compiler's words. Thread-safe.
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit);
cuda::Cubin compile_for_cuda(const std::string& source);

}  // namespace russet::kernels
