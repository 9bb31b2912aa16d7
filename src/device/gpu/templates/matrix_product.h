#pragma once
// What the kernels ask that multiply matrices of 16 bits on tensor cores and show visitors four rows at a time.
#include <string>

#include "base/function_ref.h"
#include "device/gpu/templates/contraction_writer.h"

namespace russet::gpu {

/// Whatever the sizes and strides: another operator, type or window. Empty if there is none.
std::string why_no_16_bit_product(const compile::Primitive& primitive);
/// How the factors or the bare result lie; the left factor's neighbours lie along the depth, all are read in vectors of
/// eight. Empty if they lie so.
std::string why_no_matrices(const compile::Primitive& primitive, const Contraction& c);
/// What such kernels do not run after a product: libraries add a residual faster, if there is nothing to add up.
std::string why_no_rows_epilogue(const compile::Primitive& primitive, const Contraction& c);

/// The kernel: `product(visitor, sums)` is its launch. If the epilogue adds up columns (`sums`), that leaves so many
/// parts of each, and another launch makes results of them.
KernelPtr rows_kernel(const ContractionWriter& writer, const char* name, std::int64_t parts,
                      base::FunctionRef<Call(const RowsVisitor&, bool)> product);

}  // namespace russet::gpu
