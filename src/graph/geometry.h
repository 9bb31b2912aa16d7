#pragma once
// Geometry: which elements of a storage cell a tensor consists of.
#include <russet/shape.h>
#include <optional>

namespace russet::graph {

/// Element (i, j, ...) of the tensor is element offset + i * strides[0] + j * strides[1] + ... of the cell.
struct Geometry {
  Shape sizes;
  Strides strides;
  std::int64_t offset = 0;

  static Geometry contiguous(const Shape& sizes) { return {sizes, contiguous_strides(sizes), 0}; }
  bool operator==(const Geometry&) const = default;
};

/// Whether the elements lie in row-major order without gaps (PyTorch's is_contiguous).
bool is_contiguous(const Geometry& geometry);
/// Whether the tensor is the whole cell of `cell_numel` elements in row-major order.
bool covers(const Geometry& geometry, std::int64_t cell_numel);
/// Whether no two indices may address one element (a sufficient test, as PyTorch's).
bool is_non_overlapping(const Geometry& geometry);

/// Where the elements of `inner` lie in a contiguous array of the sizes of `outer`, if both are of one cell, no
/// elements of `outer` share a place, and strides can say it.
std::optional<Geometry> within(const Geometry& outer, const Geometry& inner);

// View operations; each throws ShapeError or IndexError for what PyTorch refuses.
/// The same elements with other sizes, or nothing if strides cannot express that. No size may be -1.
std::optional<Geometry> viewed(const Geometry& geometry, const Shape& sizes);
Geometry permuted(const Geometry& geometry, const Dims& axes);
Geometry expanded(const Geometry& geometry, const Shape& sizes);
Geometry selected(const Geometry& geometry, int axis, std::int64_t index);
/// start and length in elements of the axis, already clamped; step at least 1.
Geometry sliced(const Geometry& geometry, int axis, std::int64_t start, std::int64_t length, std::int64_t step);
Geometry unsqueezed(const Geometry& geometry, int axis);
Geometry squeezed(const Geometry& geometry, std::uint32_t axes_mask);
Geometry diagonal(const Geometry& geometry, std::int64_t offset, int a, int b);

}  // namespace russet::graph
