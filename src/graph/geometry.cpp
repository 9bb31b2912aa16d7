#include "graph/geometry.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/strided.h"

namespace russet::graph {

bool is_contiguous(const Geometry& geometry) {
  return numel(geometry.sizes) == 0 || is_row_major(geometry.sizes, geometry.strides);
}

bool covers(const Geometry& geometry, std::int64_t cell_numel) {
  return geometry.offset == 0 && numel(geometry.sizes) == cell_numel && is_contiguous(geometry);
}

bool is_non_overlapping(const Geometry& geometry) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, size
  for (int axis = 0; axis < geometry.sizes.rank(); ++axis) {
    if (geometry.sizes[axis] == 0) return true;
    if (geometry.sizes[axis] > 1) axes.emplace_back(geometry.strides[axis], geometry.sizes[axis]);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t extent = 0;  // the largest offset that the axes so far reach
  for (const auto& [stride, size] : axes) {
    if (stride <= extent) return false;
    extent += stride * (size - 1);
  }
  return true;
}

std::optional<Geometry> within(const Geometry& outer, const Geometry& inner) {
  if (!is_non_overlapping(outer)) return std::nullopt;
  const Geometry from_start{inner.sizes, inner.strides, inner.offset - outer.offset};
  return moved(from_start, outer.sizes, outer.strides, contiguous_strides(outer.sizes));
}

// PyTorch's computeStride: the axes fall into chunks that are contiguous in themselves; each chunk of old axes must be
// a product of new ones.
std::optional<Geometry> viewed(const Geometry& geometry, const Shape& sizes) {
  const std::int64_t count = numel(geometry.sizes);
  Geometry result{sizes, Strides::filled(sizes.rank(), 1), geometry.offset};
  if (count == 0) {
    result.strides = geometry.sizes == sizes ? geometry.strides : contiguous_strides(sizes);
    return result;
  }
  int target = sizes.rank() - 1;
  std::int64_t base = geometry.sizes.rank() > 0 ? geometry.strides.back() : 1;
  std::int64_t old_numel = 1;
  std::int64_t new_numel = 1;
  for (int axis = geometry.sizes.rank() - 1; axis >= 0; --axis) {
    old_numel *= geometry.sizes[axis];
    const bool chunk_ends =
        axis == 0 || (geometry.sizes[axis - 1] != 1 && geometry.strides[axis - 1] != old_numel * base);
    if (!chunk_ends) continue;
    while (target >= 0 && (new_numel < old_numel || sizes[target] == 1)) {
      result.strides[target] = new_numel * base;
      new_numel *= sizes[target--];
    }
    if (new_numel != old_numel) return std::nullopt;
    if (axis > 0) {
      base = geometry.strides[axis - 1];
      old_numel = 1;
      new_numel = 1;
    }
  }
  for (; target >= 0; --target) result.strides[target] = new_numel * base;  // a scalar viewed with axes of size 1
  return result;
}

Geometry permuted(const Geometry& geometry, const Dims& axes) {
  const int rank = geometry.sizes.rank();
  if (axes.rank() != rank) {
    throw ShapeError(fmt::format("permute: {} dimensions were given for a tensor of shape {}", axes.rank(),
                                 to_string(geometry.sizes)));
  }
  Geometry result{Shape::filled(rank, 0), Strides::filled(rank, 0), geometry.offset};
  std::uint32_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    const int axis = wrap_axis(axes[i], rank);
    if ((seen >> axis) & 1U)
      throw ValueError(fmt::format("permute: dimension {} is given twice in {}", axis, to_string(axes)));
    seen |= 1U << axis;
    result.sizes[i] = geometry.sizes[axis];
    result.strides[i] = geometry.strides[axis];
  }
  return result;
}

Geometry expanded(const Geometry& geometry, const Shape& sizes) {
  const int added = sizes.rank() - geometry.sizes.rank();
  const auto refuse = [&] {
    throw ShapeError(
        fmt::format("expand: {} does not expand to {}: sizes must match, or be 1 and grow; new dimensions go in front",
                    to_string(geometry.sizes), to_string(sizes)));
  };
  if (added < 0) refuse();
  Geometry result{sizes, Strides::filled(sizes.rank(), 0), geometry.offset};
  for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
    if (axis < added) {
      if (sizes[axis] < 0) refuse();
      if (geometry.sizes.empty()) continue;  // of a scalar PyTorch repeats every axis
      // PyTorch gives a new axis of size 1 the stride that keeps it contiguous.
      if (sizes[axis] == 1 && axis + 1 < sizes.rank())
        result.strides[axis] = result.sizes[axis + 1] * result.strides[axis + 1];
      else if (sizes[axis] == 1)
        result.strides[axis] = 1;
      continue;
    }
    const std::int64_t old_size = geometry.sizes[axis - added];
    if (sizes[axis] == -1 || sizes[axis] == old_size) {
      result.sizes[axis] = old_size;
      result.strides[axis] = geometry.strides[axis - added];
    } else if (old_size != 1 || sizes[axis] < 0) {
      refuse();
    }
  }
  return result;
}

Geometry selected(const Geometry& geometry, int axis, std::int64_t index) {
  const std::int64_t size = geometry.sizes[axis];
  if (index < -size || index >= size) {
    throw IndexError(fmt::format("index {} is out of range for dimension {} of size {}", index, axis, size));
  }
  Geometry result = geometry;
  result.offset += (index < 0 ? index + size : index) * geometry.strides[axis];
  result.sizes.erase(axis);
  result.strides.erase(axis);
  return result;
}

Geometry sliced(const Geometry& geometry, int axis, std::int64_t start, std::int64_t length, std::int64_t step) {
  Geometry result = geometry;
  result.offset += start * geometry.strides[axis];
  result.sizes[axis] = length;
  result.strides[axis] *= step;
  return result;
}

Geometry unsqueezed(const Geometry& geometry, int axis) {
  Geometry result = geometry;
  const bool last = axis == geometry.sizes.rank();
  result.sizes.insert(axis, 1);
  result.strides.insert(axis, last ? 1 : geometry.sizes[axis] * geometry.strides[axis]);
  return result;
}

Geometry squeezed(const Geometry& geometry, std::uint32_t axes_mask) {
  Geometry result{{}, {}, geometry.offset};
  for (int axis = 0; axis < geometry.sizes.rank(); ++axis) {
    if (((axes_mask >> axis) & 1U) && geometry.sizes[axis] == 1) continue;
    result.sizes.push_back(geometry.sizes[axis]);
    result.strides.push_back(geometry.strides[axis]);
  }
  return result;
}

Geometry diagonal(const Geometry& geometry, std::int64_t offset, int a, int b) {
  if (a == b) throw ValueError(fmt::format("diagonal: both dimensions are {}", a));
  const std::int64_t rows = geometry.sizes[a];
  const std::int64_t columns = geometry.sizes[b];
  const std::int64_t length =
      std::max<std::int64_t>(offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns), 0);
  Geometry result = geometry;
  if (length > 0) result.offset += offset >= 0 ? offset * geometry.strides[b] : -offset * geometry.strides[a];
  const std::int64_t stride = geometry.strides[a] + geometry.strides[b];
  for (const int axis : {std::max(a, b), std::min(a, b)}) {
    result.sizes.erase(axis);
    result.strides.erase(axis);
  }
  result.sizes.push_back(length);
  result.strides.push_back(stride);
  return result;
}

}  // namespace russet::graph
