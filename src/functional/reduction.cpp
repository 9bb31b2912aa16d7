// Sums, products, extrema and counts.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/movement.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include <cmath>
#include <limits>

#include "functional/autocast.h"
#include "functional/build.h"

namespace russet {

using functional::cast;
using functional::constant;
using functional::mask_of;
using functional::reduced;
using ops::Op;

std::uint32_t DimList::mask(int rank) const {
  if (dims_.empty()) return (1U << static_cast<unsigned>(rank)) - 1;
  std::uint32_t mask = 0;
  for (const std::int64_t axis : dims_) {
    const std::uint32_t bit = 1U << static_cast<unsigned>(wrap_axis(axis, rank));
    if (mask & bit) throw ValueError(fmt::format("dimension {} is given twice in {}", axis, to_string(dims_)));
    mask |= bit;
  }
  return mask;
}

namespace {

/// Truth values reduced by `op`; `neutral` where there is nothing.
Tensor reduced_truth(Op op, bool neutral, const Tensor& x, const DimList& axes, bool keepdim) {
  const std::uint32_t mask = mask_of(x, axes);
  // PyTorch answers uint8 for uint8.
  const DType dtype = x.dtype() == DType::uint8 ? DType::uint8 : DType::boolean;
  if (functional::count_of(x, mask) > 0) return cast(reduced(op, functional::truth(x), mask, keepdim), dtype);
  Shape sizes = x.sizes();
  for (int axis = 0; axis < x.dim(); ++axis) {
    if ((mask >> axis) & 1U) sizes[axis] = 1;
  }
  const Tensor result = constant(neutral, dtype, x.device(), sizes);
  return keepdim ? result : functional::without_axes(result, mask);
}

/// The positions that `op` finds, and the elements there.
ValuesIndices found(Op op, const Tensor& x, std::int64_t axis, bool keepdim) {
  const int wrapped = wrap_axis(axis, x.dim());
  if (x.dim() == 0) return {functional::copied(x), constant(0, DType::int64, x.device())};
  const std::uint32_t mask = 1U << static_cast<unsigned>(wrapped);
  const Tensor indices = reduced(op, x, mask, true);
  const Tensor values = gather(x, wrapped, indices);
  if (keepdim) return {values, indices};
  return {functional::without_axes(values, mask), functional::without_axes(indices, mask)};
}

Tensor position_of(Op op, const Tensor& x, std::optional<std::int64_t> axis, bool keepdim) {
  if (x.dim() == 0) return constant(0, DType::int64, x.device());
  const std::uint32_t mask = axis ? 1U << static_cast<unsigned>(wrap_axis(*axis, x.dim())) : mask_of(x, {});
  return reduced(op, x, mask, keepdim);
}

}  // namespace

Tensor sum(const Tensor& x, const DimList& axes, bool keepdim, std::optional<DType> dtype) {
  return reduced(Op::sum, dtype ? cast(x, *dtype) : functional::autocast(Op::sum, x), mask_of(x, axes), keepdim);
}

Tensor mean(const Tensor& x, const DimList& axes, bool keepdim, std::optional<DType> dtype) {
  const Tensor value = dtype ? cast(x, *dtype) : x;
  functional::require_floating("mean", value);
  const std::uint32_t mask = mask_of(x, axes);
  const Tensor w = functional::wide(value);  // a sum in float16 could overflow
  const Tensor total = reduced(Op::sum, w, mask, keepdim);
  return cast(total / constant(functional::count_of(x, mask), w), value.dtype());
}

Tensor prod(const Tensor& x, const DimList& axes, bool keepdim, std::optional<DType> dtype) {
  return reduced(Op::prod, dtype ? cast(x, *dtype) : functional::autocast(Op::prod, x), mask_of(x, axes), keepdim);
}

Tensor nansum(const Tensor& x, const DimList& axes, bool keepdim) {
  if (!is_floating(x.dtype())) return sum(x, axes, keepdim);
  return sum(where(isnan(x), constant(0, x), x), axes, keepdim);
}

Tensor amax(const Tensor& x, const DimList& axes, bool keepdim) {
  return reduced(Op::amax, x, mask_of(x, axes), keepdim);
}
Tensor amin(const Tensor& x, const DimList& axes, bool keepdim) {
  return reduced(Op::amin, x, mask_of(x, axes), keepdim);
}
Tensor max(const Tensor& x) { return amax(x); }
Tensor min(const Tensor& x) { return amin(x); }
ValuesIndices max(const Tensor& x, std::int64_t axis, bool keepdim) { return found(Op::argmax, x, axis, keepdim); }
ValuesIndices min(const Tensor& x, std::int64_t axis, bool keepdim) { return found(Op::argmin, x, axis, keepdim); }
Tensor max(const Tensor& x, const Tensor& y) { return maximum(x, y); }
Tensor min(const Tensor& x, const Tensor& y) { return minimum(x, y); }
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdim) {
  return position_of(Op::argmax, x, axis, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdim) {
  return position_of(Op::argmin, x, axis, keepdim);
}

Tensor any(const Tensor& x, const DimList& axes, bool keepdim) {
  return reduced_truth(Op::amax, false, x, axes, keepdim);
}
Tensor all(const Tensor& x, const DimList& axes, bool keepdim) {
  return reduced_truth(Op::amin, true, x, axes, keepdim);
}
Tensor count_nonzero(const Tensor& x, const DimList& axes) { return sum(functional::truth(x), axes); }

namespace {

/// What a running sum or product is computed in.
Tensor accumulated_in(Op op, const Tensor& x, std::optional<DType> dtype) {
  if (dtype) return cast(x, *dtype);
  return is_floating(x.dtype()) ? functional::autocast(op, x) : cast(x, DType::int64);
}

Tensor running(Op op, const Tensor& x, std::int64_t axis, std::optional<DType> dtype) {
  const Tensor value = accumulated_in(op, x, dtype);
  const int wrapped = wrap_axis(axis, x.dim());
  if (x.dim() == 0) return functional::copied(value);
  graph::NodeInfo given;
  given.attributes = ops::Axes{1U << static_cast<unsigned>(wrapped)};
  return autograd::apply(op, {value}, std::move(given));
}

}  // namespace

Tensor cumsum(const Tensor& x, std::int64_t axis, std::optional<DType> dtype) {
  return running(Op::cumsum, x, axis, dtype);
}
Tensor cumprod(const Tensor& x, std::int64_t axis, std::optional<DType> dtype) {
  return running(Op::cumprod, x, axis, dtype);
}

Tensor median(const Tensor& x) { return median(x.flatten(), 0).values; }

ValuesIndices median(const Tensor& x, std::int64_t axis, bool keepdim) {
  if (x.dim() == 0) return {functional::copied(x), constant(0, DType::int64, x.device())};
  const int wrapped = wrap_axis(axis, x.dim());
  const std::int64_t size = x.sizes()[wrapped];
  if (size == 0) throw ShapeError(fmt::format("median: dimension {} of {} is empty", axis, to_string(x.sizes())));
  const ValuesIndices sorted = sort(x, wrapped);
  Tensor values = sorted.values.narrow(wrapped, (size - 1) / 2, 1);
  Tensor indices = sorted.indices.narrow(wrapped, (size - 1) / 2, 1);
  if (is_floating(x.dtype())) {  // a NaN, which is sorted last, is the median
    const Tensor last = sorted.values.narrow(wrapped, size - 1, 1);
    const Tensor broken = isnan(last);
    indices = where(broken, sorted.indices.narrow(wrapped, size - 1, 1), indices);
    values = where(broken, last, values);
  }
  if (keepdim) return {values.contiguous(), indices.contiguous()};
  return {values.squeeze(wrapped).contiguous(), indices.squeeze(wrapped).contiguous()};
}

}  // namespace russet
