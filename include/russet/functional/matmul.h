#pragma once
// Matrix products.
#include <russet/tensor.h>
#include <string_view>
#include <vector>

namespace russet {

/// Matrix product as PyTorch's: vectors times vectors give a number, a vector counts as a row before and as a column
/// after a matrix, leading axes broadcast. Throws ShapeError if inner sizes differ, TypeError if types differ.
Tensor matmul(const Tensor& a, const Tensor& b);
/// [m, k] x [k, n].
Tensor mm(const Tensor& a, const Tensor& b);
/// [b, m, k] x [b, k, n].
Tensor bmm(const Tensor& a, const Tensor& b);
/// [m, k] x [k].
Tensor mv(const Tensor& a, const Tensor& v);
/// [k] x [k].
Tensor dot(const Tensor& a, const Tensor& b);
/// [m] and [n] give [m, n].
Tensor outer(const Tensor& a, const Tensor& b);
/// beta * x + alpha * (a @ b) for matrices; x broadcasts to [m, n]. A beta of 0 ignores x, NaN included.
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
/// beta * x + alpha * (a @ b) for batches of matrices.
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
/// x W^T + bias. x: [..., in], weight: [out, in] (or [in]), bias: [out] or undefined. Returns [..., out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Einstein's summation, "bij,bjk->bik": any number of operands, which are multiplied from left to right; "..." stands
/// for broadcast axes; an index named twice in one operand takes its diagonal. Throws ValueError for an equation that
/// does not parse, ShapeError for sizes that differ.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
/// Sum over the last `axes` axes of a and the first of b.
Tensor tensordot(const Tensor& a, const Tensor& b, int axes = 2);
/// Kronecker's product of tensors.
Tensor kron(const Tensor& a, const Tensor& b);

}  // namespace russet
