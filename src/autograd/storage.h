#pragma once
// Gradients between a tensor and its views: both lie in one storage cell.
#include <russet/tensor.h>

#include "graph/geometry.h"

namespace russet::autograd {

/// The gradient of the root tensor from that of a view of it: zero outside the view.
Tensor scatter_to_root(const Tensor& gradient, const graph::Geometry& root, const graph::Geometry& view,
                       std::int64_t cell_numel);
/// The gradient of a view's elements out of the root's.
Tensor gather_from_root(const Tensor& gradient, const graph::Geometry& root, const graph::Geometry& view,
                        std::int64_t cell_numel);
/// The root's gradient with the view's elements zeroed.
Tensor clear_in_root(const Tensor& gradient, const graph::Geometry& root, const graph::Geometry& view,
                     std::int64_t cell_numel);

/// Sums over the axes along which `shape` was broadcast to the tensor's sizes.
Tensor sum_to(const Tensor& tensor, const Shape& shape);

}  // namespace russet::autograd
