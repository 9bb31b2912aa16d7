#pragma once
// Primitives with their attributes, as composites write them.
#include <russet/autograd.h>
#include <russet/functional/reduction.h>
#include <russet/tensor.h>

#include <utility>

#include "autograd/tape.h"
#include "functional/promotion.h"
#include "graph/tensor_state.h"

namespace russet::functional {

/// A number which the user passed, at every element: a run-time argument, not part of a plan.
Tensor number(Scalar value, DType dtype, Device device, const Shape& sizes = {});
/// A number that is to stand in a tensor of the type: throws ValueError that names `function` if the type cannot hold
/// it.
Tensor held_number(const char* function, Scalar value, DType dtype, Device device, const Shape& sizes = {});
/// Throws ValueError that names `function` if the type cannot hold the number. A fraction may be lost, and unsigned
/// integers take a negative one for what it wraps to.
void require_held(const char* function, Scalar value, DType dtype);
/// The largest finite number of a floating type.
double largest_of(DType dtype);
/// A number that belongs to a composite's definition, which passes may look at.
Tensor constant(Scalar value, DType dtype, Device device, const Shape& sizes = {});
/// A constant in the type and on the device of `like`.
inline Tensor constant(Scalar value, const Tensor& like, const Shape& sizes = {}) {
  return constant(value, like.dtype(), like.device(), sizes);
}
/// 0, 1, 2, ... in row-major order: int64.
Tensor iota(const Shape& sizes, Device device);
/// 0, ..., sizes[axis] - 1 along one of `rank` axes, size 1 along the others.
Tensor iota_along(int axis, int rank, std::int64_t size, Device device);
/// Memory without values.
Tensor uninitialised(const Shape& sizes, DType dtype, Device device);
/// A copy of the elements in the order of a view: element (i, j, ...) is element offset + i * strides[0] + ... of x in
/// row-major order.
Tensor strided(const Tensor& x, const Shape& sizes, const Strides& strides, std::int64_t offset = 0);
/// A copy of `base` with the elements of a view (as above) replaced by `value`'s.
Tensor overwritten(const Tensor& base, const Tensor& value, const Strides& strides, std::int64_t offset = 0);
/// A handle with another geometry on x's storage.
Tensor aliased(const Tensor& x, graph::Geometry geometry);
/// Throws ValueError if x is undefined.
const graph::Geometry& geometry_of(const Tensor& x);
/// x's elements as a tensor of its own, contiguous.
Tensor copied(const Tensor& x);
/// The elements of `made`, which has x's sizes, in a tensor of its own whose axes lie in memory as those of a copy of
/// x; `made` itself if that is how it lies.
Tensor laid_out_like(const Tensor& x, const Tensor& made);

/// The axes that a reduction of x combines, as bits; a tensor of no axes has none.
std::uint32_t mask_of(const Tensor& x, const DimList& axes);
/// A reduction with the reduced axes kept at size 1, or removed.
Tensor reduced(ops::Op op, const Tensor& x, std::uint32_t mask, bool keepdim);
/// x without the axes of size 1 in `mask`.
Tensor without_axes(const Tensor& x, std::uint32_t mask);
/// The number of elements that a reduction over `mask` combines.
std::int64_t count_of(const Tensor& x, std::uint32_t mask);
/// `reduced` with the axes of `mask` back at size 1, if a reduction without keepdim took them from a tensor of `rank`.
Tensor with_axes(const Tensor& reduced, std::uint32_t mask, int rank, bool keepdim);

/// Throw TypeError that names `function`.
void require_floating(const char* function, const Tensor& x);
void require_index_type(const char* function, const Tensor& index);
void require_same_type(const char* function, const Tensor& x, const Tensor& y);
/// An index that gather and scatter read: along `axis` by the index tensor, along the others in step with it.
ops::Indexing along_axis(int axis, const Shape& index);
/// A vector of positions on `axis`: all that x holds along the axes before is meant.
ops::Indexing on_axis(const Tensor& x, int axis, std::int64_t count);
/// Elements, or sub-arrays, of x that an index names.
Tensor taken(const Tensor& x, const ops::Indexing& indexing, const Tensor& index);
/// A copy of x with them replaced by `values`, or with `values` added.
Tensor placed(const Tensor& x, const Tensor& values, const ops::Indexing& indexing, const Tensor& index);

/// What `compute` returns, computed outside the tape (for composites that own their gradient).
template <class Compute>
auto outside_tape(Compute&& compute) {
  const NoGrad guard;
  return std::forward<Compute>(compute)();
}

}  // namespace russet::functional
