#pragma once
// Factorisations by LAPACK.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// cholesky, lu, qr, eigh, svd, solve_triangular of float32 and float64, a matrix a thread.
Verdict judge_lapack(const compile::Primitive& primitive);

}  // namespace russet::cpu
