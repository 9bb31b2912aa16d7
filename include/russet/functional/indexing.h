#pragma once
// Reading and writing elements by index. tensor.h declares index() and index_put_().
//
// Indices are int64 (int32, int16, int8 and uint8 are converted). Indices out of range are undefined for gather-like
// functions while a device computes; on the host's devices they raise IndexError at the latest when the value is read.
#include <russet/functional/reduction.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// `x[indices] += value` when `accumulate`, repeated indices included.
void index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& value, bool accumulate);
/// `x[indices] = number`.
void index_put_(const Tensor& x, const std::vector<Index>& indices, Scalar value);

/// out[i][j][k] = x[i][index[i][j][k]][k] for axis 1. index: x's rank, not larger than x on the other axes. Returns
/// index's shape.
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
/// A copy of x with out[i][index[i][j][k]][k] = source[i][j][k] for axis 1.
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
/// As scatter, adding up.
Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
const Tensor& scatter_(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
const Tensor& scatter_(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
const Tensor& scatter_add_(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);

/// Slices of x along `axis` at the positions in `index` (a vector).
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index);
/// A copy of x with alpha * source added to the slices at `index` along `axis`.
Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source, Scalar alpha = 1);
const Tensor& index_add_(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                         Scalar alpha = 1);
/// A copy of x with the slices at `index` along `axis` replaced by those of `source`.
Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
/// A copy of x with the slices at `index` along `axis` filled.
Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
/// Elements of the flattened tensor, in index's shape.
Tensor take(const Tensor& x, const Tensor& index);
/// gather after broadcasting the other axes; without an axis, of the flattened tensor.
Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<std::int64_t> axis = {});

/// value where mask holds, else x. The mask broadcasts; it is boolean (TypeError).
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// `value`: a tensor of no axes.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);
/// The elements where mask holds, in row-major order: a vector. Waits for the mask.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// Row-major indices of what is not zero: [count, rank], int64. Waits for x; the null device throws DeviceError.
Tensor nonzero(const Tensor& x);
/// [..., classes] with a one at each class, int64; a class out of range raises IndexError when the value is read.
/// classes = -1: the largest plus one (waits for x).
Tensor one_hot(const Tensor& x, std::int64_t classes = -1);

}  // namespace russet
