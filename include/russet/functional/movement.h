#pragma once
// Moving elements without changing them. The first group gives views (aliases); the rest copies.
#include <russet/functional/reduction.h>
#include <russet/tensor.h>
#include <vector>

namespace russet {

inline Tensor reshape(const Tensor& x, const Shape& sizes) { return x.reshape(sizes); }
inline Tensor flatten(const Tensor& x, std::int64_t start = 0, std::int64_t end = -1) { return x.flatten(start, end); }
inline Tensor permute(const Tensor& x, const Dims& axes) { return x.permute(axes); }
inline Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) { return x.transpose(a, b); }
inline Tensor squeeze(const Tensor& x) { return x.squeeze(); }
inline Tensor squeeze(const Tensor& x, std::int64_t axis) { return x.squeeze(axis); }
inline Tensor unsqueeze(const Tensor& x, std::int64_t axis) { return x.unsqueeze(axis); }
inline Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  return x.narrow(axis, start, length);
}
/// One axis split into several; one of `sizes` may be -1.
Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& sizes);
Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// Axis source[i] becomes axis destination[i]; the others keep their order.
Tensor movedim(const Tensor& x, const AxisList& source, const AxisList& destination);
Tensor broadcast_to(const Tensor& x, const Shape& sizes);
/// All expanded to their common shape.
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
/// Views along `axis` of the given sizes (which must add up: ShapeError), or of `size` each, the last maybe smaller.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
/// At most `chunks` views along `axis` of equal size, the last maybe smaller.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis = 0);
/// The views x[0], x[1], ... along `axis`.
std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis = 0);
/// Windows of `size` elements, `step` apart, along `axis`, as a new last axis.
Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

/// The tensors one after another along `axis`; other sizes must match (ShapeError); types are promoted.
Tensor cat(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// Tensors of one shape along a new axis.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// Elements in reverse order along the axes.
Tensor flip(const Tensor& x, const AxisList& axes);
/// Elements moved by `shifts`, around the end. Without axes: of the flattened tensor.
Tensor roll(const Tensor& x, const AxisList& shifts, const AxisList& axes = {});
/// Turned by 90 degrees `k` times in the plane of two axes, from the first towards the second.
Tensor rot90(const Tensor& x, std::int64_t k = 1, const AxisList& axes = {0, 1});
/// repeats[i] copies along axis i; missing entries or axes in front count as 1.
Tensor tile(const Tensor& x, const Dims& repeats);
/// As tile, but `repeats` has at least as many entries as x has axes (ShapeError).
Tensor repeat(const Tensor& x, const Dims& repeats);
/// Every element (or slice along `axis`) `repeats` times in a row. Without an axis: of the flattened tensor.
Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis = {});

enum class PadMode : std::uint8_t { constant, reflect, replicate, circular };
/// `amounts`: elements before and after the last axis, then the one before it, and so on; negative ones crop.
/// reflect: the edge is not repeated; amounts are below the axis's size (ShapeError).
Tensor pad(const Tensor& x, const std::vector<std::int64_t>& amounts, PadMode mode = PadMode::constant,
           Scalar value = 0);

/// The elements on and below (tril), on and above (triu) diagonal `offset` of the last two axes; zeros elsewhere.
Tensor tril(const Tensor& x, std::int64_t offset = 0);
Tensor triu(const Tensor& x, std::int64_t offset = 0);
/// A vector on diagonal `offset` of a square matrix; or the diagonal of a matrix.
Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// The last axis of x on the diagonals of new last two axes.
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0);
/// Sum of the diagonal of a matrix.
Tensor trace(const Tensor& x);
/// Coordinates of a grid, one tensor for each vector. `xy`: the first two axes swapped, as in Cartesian indexing.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, bool xy = false);

}  // namespace russet
