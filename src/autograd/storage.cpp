#include "autograd/storage.h"

#include <russet/error.h>

#include "autograd/rules_detail.h"
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

Tensor into_storage(const Tensor& gradient, const Geometry& view, std::int64_t numel) {
  return transposed_view(gradient, {view.strides, view.offset, false}, 0, {numel});
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
  if (covers(root, numel)) return transposed_view(gradient, {view.strides, view.offset, false}, 0, root.sizes);
  if (const auto inside = graph::within(root, view)) {
    return transposed_view(gradient, {inside->strides, inside->offset, false}, 0, root.sizes);
  }
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
