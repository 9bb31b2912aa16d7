#pragma once
// float64 products by OpenBLAS.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// float64 matrices that are row-major or transposed, large enough to be worth a library.
Verdict judge_blas(const compile::Primitive& primitive);

}  // namespace russet::cpu
