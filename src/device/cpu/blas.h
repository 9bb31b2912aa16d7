#pragma once
// Products by BLAS: OpenBLAS, on macOS Accelerate.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// BLAS and LAPACK work on the calling thread alone. For every thread that calls them, and before kernels run.
void use_calling_thread();

/// float64 and float32 matrices that are row-major or transposed, large enough to be worth a library.
Verdict judge_blas(const compile::Primitive& primitive);
/// Those float32 products that BLAS was measured to do faster than oneDNN.
Verdict judge_faster_blas(const compile::Primitive& primitive);

}  // namespace russet::cpu
