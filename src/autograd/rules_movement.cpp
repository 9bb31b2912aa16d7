// Gradients of views, overwrites and indexing: linear maps, whose gradients are their transposes.
#include <algorithm>
#include <cstdlib>

#include "autograd/rules_detail.h"
#include "graph/geometry.h"

namespace russet::autograd {
namespace {

using graph::Geometry;
using ops::Op;
using ops::View;

Geometry with_positive_strides(const Shape& sizes, const View& view) {
  Geometry geometry{sizes, view.strides, 0};
  for (std::int64_t& stride : geometry.strides) stride = std::abs(stride);
  return geometry;
}

// For a view that reads every element of its input exactly once: the view of the result that is the input. Its axes
// are in the order of the input's memory, longest stride first.
Geometry inverse(const Shape& sizes, const View& view) {
  Dims order;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] > 1) order.push_back(axis);
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::abs(view.strides[static_cast<int>(a)]) > std::abs(view.strides[static_cast<int>(b)]);
  });
  const Strides memory = contiguous_strides(sizes);
  Geometry geometry;
  for (const std::int64_t entry : order) {
    const int axis = static_cast<int>(entry);
    const bool reversed = view.strides[axis] < 0;
    geometry.sizes.push_back(sizes[axis]);
    geometry.strides.push_back(reversed ? -memory[axis] : memory[axis]);
    if (reversed) geometry.offset += (sizes[axis] - 1) * memory[axis];
  }
  return geometry;
}

Tensor viewed(const Tensor& x, const Geometry& geometry) {
  return apply_as(Op::strided, {x}, x.dtype(), geometry.sizes, View{geometry.strides, geometry.offset});
}

Tensor through_inverse(const Tensor& gradient, const View& view, const Shape& input) {
  const Geometry permuted = inverse(gradient.sizes(), view);
  if (const auto at_once = graph::viewed(permuted, input)) return viewed(gradient, *at_once);
  return viewed(viewed(gradient, permuted), Geometry::contiguous(input));
}

// Any overlap: adds up at the positions that the same view reads off 0, 1, 2, ...
Tensor through_positions(const Tensor& gradient, const View& view, std::uint64_t argument, const Shape& input) {
  const Shape flat{numel(input)};
  graph::NodeInfo given;
  given.dtype = DType::int64;
  given.device = gradient.device();
  given.shape = flat;
  const Tensor iota = graph::wrap(graph::record(Op::iota, graph::NodeRef{}, std::move(given)));
  const Tensor positions = apply_as(Op::strided, {iota}, DType::int64, gradient.sizes(), view, argument);
  const ops::Indexing indexing{.lead = gradient.sizes(), .accumulates = true};
  return indexed(Op::put, {constant(gradient, 0, flat), gradient}, std::array{positions}, indexing).reshape(input);
}

// The sum over repeated elements: axes of stride 0 become axes of size 1.
Tensor without_repeats(const Tensor& gradient, const View& view) {
  std::uint32_t repeated = 0;
  Shape sizes = gradient.sizes();
  for (int axis = 0; axis < gradient.dim(); ++axis) {
    if (view.strides[axis] != 0 || sizes[axis] == 1) continue;
    repeated |= 1U << axis;
    sizes[axis] = 1;
  }
  return repeated == 0 ? gradient : apply_as(Op::sum, {gradient}, gradient.dtype(), sizes, ops::Axes{repeated});
}

}  // namespace

Tensor transposed_view(const Tensor& gradient, const View& view, std::uint64_t argument, const Shape& input) {
  if (gradient.numel() == 0) return constant(gradient, 0, input);
  const Tensor summed = without_repeats(gradient, view);
  if (!graph::is_non_overlapping(with_positive_strides(summed.sizes(), view))) {
    return through_positions(summed, view, argument, input);
  }
  if (summed.numel() == numel(input)) return through_inverse(summed, view, input);
  return apply_as(Op::overwrite, {constant(summed, 0, input), summed}, summed.dtype(), input, view, argument);
}

Gradients strided_gradient(const Context& c, const Tensor& g) {
  return one(transposed_view(g, std::get<View>(c.node.attributes), c.node.argument, c.shape_of(0)));
}

Gradients overwrite_gradient(const Context& c, const Tensor& g) {
  const auto& view = std::get<View>(c.node.attributes);
  const Shape& value = c.shape_of(1);
  return both(
      c,
      [&] {
        if (numel(value) == g.numel()) return constant(g, 0, g.sizes());
        return apply_as(Op::overwrite, {g, constant(g, 0, value)}, g.dtype(), g.sizes(), view, c.node.argument);
      },
      [&] { return apply_as(Op::strided, {g}, g.dtype(), value, view, c.node.argument); });
}

// in0: array; the others: index.
Gradients take_gradient(const Context& c, const Tensor& g) {
  const Shape& input = c.shape_of(0);
  ops::Indexing indexing = std::get<ops::Indexing>(c.node.attributes);
  indexing.accumulates = true;
  return one(indexed(Op::put, {constant(g, 0, input), g}, c.inputs.subspan(1), indexing));
}

// in0: base; in1: values; the others: index.
Gradients put_gradient(const Context& c, const Tensor& g) {
  ops::Indexing indexing = std::get<ops::Indexing>(c.node.attributes);
  const std::span<const Tensor> index = c.inputs.subspan(2);
  Gradients gradients;
  if (c.needs[0]) {
    gradients[0] = indexing.accumulates ? g : indexed(Op::put, {g, constant(g, 0, c.shape_of(1))}, index, indexing);
  }
  indexing.accumulates = false;
  if (c.needs[1]) gradients[1] = indexed(Op::take, {g}, index, indexing);
  return gradients;
}

}  // namespace russet::autograd
