#pragma once
// The order of axes in memory: which strides results get. PyTorch's rules, so that scripts that ask for stride() or
// rely on what view() accepts see the same.
#include <span>

#include "graph/geometry.h"

namespace russet::graph {

/// Whether the elements fill a stretch of memory without gaps, in any order of the axes.
bool is_dense(const Geometry& geometry);

/// The strides of an elementwise result of shape `sizes`: its axes keep the order in which the inputs have theirs, the
/// first input that tells two axes apart decides (PyTorch's TensorIterator). Inputs broadcast to `sizes`.
Strides result_strides(const Shape& sizes, std::span<const Geometry* const> inputs);
/// Whether all are row-major with the very strides that a new tensor has: results are, then, too.
bool are_plain(std::span<const Geometry* const> inputs);
/// The strides of a copy (PyTorch's preserve_format): the same if they are dense, else dense ones in the same order.
Strides copy_strides(const Geometry& geometry);

/// The axes from the outermost in memory to the innermost; in place where strides do not tell.
Dims memory_order(const Strides& strides);
/// `geometry`, of which leading axes may be missing (they were broadcast), with its axes in `order`.
Geometry reordered(const Geometry& geometry, const Dims& order);

}  // namespace russet::graph
