#include "functional/build.h"

#include <fmt/format.h>
#include <russet/functional/elementwise.h>

#include <bit>
#include <cmath>
#include <limits>

#include "graph/axis_order.h"

namespace russet::functional {
namespace {

using graph::NodeInfo;
using graph::NodeRef;
using ops::Op;

NodeInfo described(DType dtype, Device device, const Shape& sizes) {
  NodeInfo info;
  info.dtype = dtype;
  info.device = device;
  info.shape = sizes;
  return info;
}

Tensor source(Op op, NodeInfo info) { return graph::wrap(graph::record(op, graph::NodeRefs{}, std::move(info))); }

// A number as PyTorch converts it: to a boolean by comparing with zero.
Scalar converted(Scalar value, DType dtype) { return dtype == DType::boolean ? Scalar(value.to_double() != 0) : value; }

// As PyTorch's c10::overflows.
bool holds(DType dtype, Scalar value) {
  if (dtype == DType::boolean) return true;
  const double real = value.to_double();
  if (is_floating(dtype)) return !std::isfinite(real) || std::abs(real) <= largest_of(dtype);
  return visit_dtype(dtype, [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_same_v<T, std::int64_t>) {
      return value.kind() != DType::float64 || (real >= -0x1p63 && real < 0x1p63);
    } else if constexpr (Limits::is_integer) {
      if (value.kind() == DType::float64) return real >= Limits::min() && real <= Limits::max();
      const std::int64_t least = Limits::is_signed ? Limits::min() : -std::int64_t{Limits::max()};
      return value.to_int64() >= least && value.to_int64() <= Limits::max();
    } else {
      return true;
    }
  });
}

}  // namespace

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::float16: return 65504;
    case DType::bfloat16: return 0x1.fep127;
    case DType::float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

void require_held(const char* function, Scalar value, DType dtype) {
  if (holds(dtype, value)) return;
  const std::string text =
      value.kind() == DType::float64 ? fmt::format("{}", value.to_double()) : fmt::format("{}", value.to_int64());
  throw ValueError(fmt::format("{}: {} cannot hold {}", function, name_of(dtype), text));
}

Tensor held_number(const char* function, Scalar value, DType dtype, Device device, const Shape& sizes) {
  require_held(function, value, dtype);
  return number(value, dtype, device, sizes);
}

Tensor number(Scalar value, DType dtype, Device device, const Shape& sizes) {
  NodeInfo info = described(dtype, device, sizes);
  const Scalar held = converted(value, dtype);
  info.argument =
      is_floating(dtype) ? std::bit_cast<std::uint64_t>(held.to_double()) : static_cast<std::uint64_t>(held.to_int64());
  return source(Op::scalar, std::move(info));
}

Tensor constant(Scalar value, DType dtype, Device device, const Shape& sizes) {
  return graph::wrap(graph::constant(converted(value, dtype), dtype, device, sizes));
}

Tensor iota(const Shape& sizes, Device device) { return source(Op::iota, described(DType::int64, device, sizes)); }

Tensor iota_along(int axis, int rank, std::int64_t size, Device device) {
  Shape sizes = Shape::filled(rank, 1);
  sizes[axis] = size;
  return iota(sizes, device);
}

Tensor uninitialised(const Shape& sizes, DType dtype, Device device) {
  return source(Op::empty, described(dtype, device, sizes));
}

Tensor strided(const Tensor& x, const Shape& sizes, const Strides& strides, std::int64_t offset) {
  NodeInfo info = described(x.dtype(), x.device(), sizes);
  info.attributes = ops::View{strides, offset, false};
  return autograd::apply(Op::strided, {x}, std::move(info));
}

Tensor overwritten(const Tensor& base, const Tensor& value, const Strides& strides, std::int64_t offset) {
  NodeInfo info = described(base.dtype(), base.device(), base.sizes());
  info.attributes = ops::View{strides, offset, false};
  return autograd::apply(Op::overwrite, {base, value}, std::move(info));
}

Tensor copied(const Tensor& x) { return strided(x, x.sizes(), contiguous_strides(x.sizes())); }

Tensor laid_out_like(const Tensor& x, const Tensor& made) {
  const Strides strides = graph::copy_strides(geometry_of(x));
  if (strides == made.strides()) return made;
  const Tensor image = aliased(made, graph::reordered(geometry_of(made), graph::memory_order(strides)));
  return autograd::reshaped_result(copied(image), {x.sizes(), strides, 0});
}

Tensor aliased(const Tensor& x, graph::Geometry geometry) { return autograd::alias(x, std::move(geometry)); }

const graph::Geometry& geometry_of(const Tensor& x) {
  x.sizes();  // throws if x is undefined
  return x.state()->geometry;
}

std::uint32_t mask_of(const Tensor& x, const DimList& axes) {
  const std::uint32_t mask = axes.mask(x.dim());
  return x.dim() == 0 ? 0 : mask;
}

Tensor reduced(Op op, const Tensor& x, std::uint32_t mask, bool keepdim) {
  NodeInfo info;
  info.attributes = ops::Axes{mask};
  const Tensor result = autograd::apply(op, {x}, std::move(info));
  return keepdim ? result : without_axes(result, mask);
}

Tensor without_axes(const Tensor& x, std::uint32_t mask) {
  if (mask == 0 || x.dim() == 0) return x;
  return autograd::reshaped_result(x, graph::squeezed(geometry_of(x), mask));
}

std::int64_t count_of(const Tensor& x, std::uint32_t mask) {
  std::int64_t count = 1;
  for (int axis = 0; axis < x.dim(); ++axis) {
    if ((mask >> axis) & 1U) count *= x.sizes()[axis];
  }
  return count;
}

Tensor with_axes(const Tensor& reduced, std::uint32_t mask, int rank, bool keepdim) {
  if (keepdim || rank == 0) return reduced;
  graph::Geometry geometry = geometry_of(reduced);
  for (int axis = 0; axis < rank; ++axis) {
    if ((mask >> axis) & 1U) geometry = graph::unsqueezed(geometry, axis);
  }
  return autograd::reshaped_result(reduced, std::move(geometry));
}

void require_floating(const char* function, const Tensor& x) {
  if (is_floating(x.dtype())) return;
  throw TypeError(
      fmt::format("{}: takes floating types, not {}. Cast with .to(DType::float32)", function, name_of(x.dtype())));
}

void require_same_type(const char* function, const Tensor& x, const Tensor& y) {
  if (x.dtype() == y.dtype()) return;
  throw TypeError(fmt::format("{}: the types differ: {} and {}", function, name_of(x.dtype()), name_of(y.dtype())));
}

void require_index_type(const char* function, const Tensor& index) {
  if (is_integral(index.dtype())) return;
  throw TypeError(fmt::format("{}: the index is of an integer type, not {}{}", function, name_of(index.dtype()),
                              index.dtype() == DType::boolean ? ". A bool is no position" : ""));
}

ops::Indexing along_axis(int axis, const Shape& index) {
  ops::Indexing indexing{.lead = index, .axes = static_cast<std::int16_t>(index.rank())};
  for (int i = 0; i < index.rank(); ++i) {
    indexing.sources[static_cast<std::size_t>(i)] = i == axis ? ops::Indexing::by_tensor : static_cast<std::int16_t>(i);
  }
  return indexing;
}

ops::Indexing on_axis(const Tensor& x, int axis, std::int64_t count) {
  Shape lead;
  for (int i = 0; i < axis; ++i) lead.push_back(x.sizes()[i]);
  lead.push_back(count);
  return along_axis(axis, lead);
}

Tensor taken(const Tensor& x, const ops::Indexing& indexing, const Tensor& index) {
  return autograd::indexed(Op::take, {x}, std::span(&index, 1), indexing);
}

Tensor placed(const Tensor& x, const Tensor& values, const ops::Indexing& indexing, const Tensor& index) {
  return autograd::indexed(Op::put, {x, values}, std::span(&index, 1), indexing);
}

}  // namespace russet::functional
