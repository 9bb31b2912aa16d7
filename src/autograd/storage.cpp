#include "autograd/storage.h"

#include <russet/error.h>

#include "autograd/tape.h"
#include "graph/recorder.h"
#include "graph/tensor_state.h"

namespace russet::autograd {
namespace {

using graph::Geometry;
using ops::Op;

graph::NodeInfo info_of(const Shape& shape, ops::Attributes attributes) {
  graph::NodeInfo info;
  info.shape = shape;
  info.attributes = std::move(attributes);
  return info;
}

Tensor strided(const Tensor& x, const Geometry& geometry) {
  graph::NodeInfo info = info_of(geometry.sizes, ops::View{geometry.strides, geometry.offset, false});
  info.dtype = x.dtype();
  return apply(Op::strided, {x}, std::move(info));
}

Tensor overwrite(const Tensor& base, const Tensor& value, const Geometry& geometry) {
  return apply(Op::overwrite, {base, value},
               info_of(base.sizes(), ops::View{geometry.strides, geometry.offset, false}));
}

Tensor zeros(const Shape& shape, const Tensor& like) {
  return graph::wrap(graph::constant(0, like.dtype(), like.device(), shape));
}

/// Axes along which all indices address the same elements count once.
Tensor sum_overlaps(const Tensor& gradient, Geometry& geometry) {
  std::uint32_t mask = 0;
  Shape kept = geometry.sizes;
  for (int axis = 0; axis < kept.rank(); ++axis) {
    if (geometry.strides[axis] == 0 && kept[axis] > 1) {
      mask |= 1U << axis;
      kept[axis] = 1;
    }
  }
  if (mask == 0) return gradient;
  geometry.sizes = kept;
  return apply(Op::sum, {gradient}, info_of({}, ops::Axes{mask}));
}

Tensor into_storage(const Tensor& gradient, Geometry view, std::int64_t numel) {
  const Tensor summed = sum_overlaps(gradient, view);
  if (covers(view, numel)) return strided(summed, Geometry::contiguous({numel}));
  if (!is_non_overlapping(view)) {
    // Elements that several indices share: add up by position.
    Tensor position;
    for (int axis = 0; axis < view.sizes.rank(); ++axis) {
      Shape along(view.sizes.rank(), 1);
      along[axis] = view.sizes[axis];
      graph::NodeInfo info = info_of(along, {});
      info.device = gradient.device();
      const Tensor count = graph::wrap(graph::record(Op::iota, std::array<graph::NodeRef, 3>{}, std::move(info)));
      const Tensor step = graph::wrap(graph::constant(view.strides[axis], DType::int64, gradient.device()));
      const Tensor term = apply(Op::mul, {count, step});
      position = position.defined() ? apply(Op::add, {position, term}) : term;
    }
    const Tensor start = graph::wrap(graph::constant(view.offset, DType::int64, gradient.device()));
    return apply(Op::put, {zeros({numel}, gradient), apply(Op::add, {position, start}), summed},
                 info_of({}, ops::Accumulate{true}));
  }
  return overwrite(zeros({numel}, gradient), summed, view);
}

Tensor as_storage(const Tensor& root_gradient, const Geometry& root, std::int64_t numel) {
  if (!is_non_overlapping(root)) {
    throw AutogradError(
        "autograd: a view of a leaf whose own elements overlap (an expanded tensor) has no gradient; "
        "clone() the leaf first");
  }
  return into_storage(root_gradient, root, numel);
}

}  // namespace

Tensor scatter_to_root(const Tensor& gradient, const Geometry& root, const Geometry& view, std::int64_t numel) {
  const Tensor storage = into_storage(gradient, view, numel);
  if (!is_non_overlapping(root)) return as_storage(gradient, root, numel);  // throws
  return strided(storage, root);
}

Tensor gather_from_root(const Tensor& gradient, const Geometry& root, const Geometry& view, std::int64_t numel) {
  return strided(as_storage(gradient, root, numel), view);
}

Tensor clear_in_root(const Tensor& gradient, const Geometry& root, const Geometry& view, std::int64_t numel) {
  const Tensor storage = as_storage(gradient, root, numel);
  return strided(overwrite(storage, zeros(view.sizes, gradient), view), root);
}

Tensor sum_to(const Tensor& tensor, const Shape& shape) {
  if (tensor.sizes() == shape) return tensor;
  const int added = tensor.dim() - shape.rank();
  std::uint32_t mask = 0;
  for (int axis = 0; axis < tensor.dim(); ++axis) {
    if (axis < added || (shape[axis - added] == 1 && tensor.sizes()[axis] != 1)) mask |= 1U << axis;
  }
  Tensor summed = mask == 0 ? tensor : apply(Op::sum, {tensor}, info_of({}, ops::Axes{mask}));
  return summed.sizes() == shape ? summed : strided(summed, Geometry::contiguous(shape));
}

}  // namespace russet::autograd
