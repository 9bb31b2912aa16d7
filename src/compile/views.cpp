#include "compile/views.h"

namespace russet::compile {
namespace {

/// The index in `base` of row-major position `position`.
Dims unravel(std::int64_t position, const Shape& base) {
  const Strides order = contiguous_strides(base);
  Dims index = Dims::filled(base.rank(), 0);
  for (int axis = 0; axis < base.rank(); ++axis) {
    if (base[axis] == 1) continue;
    index[axis] = position / order[axis];
    position %= order[axis];
  }
  return index;
}

/// Memory order with neighbouring axes merged where they lie one after the other.
Affine merged(const Shape& base, const Strides& strides, Shape& sizes) {
  Affine result;
  for (int axis = 0; axis < base.rank(); ++axis) {
    if (base[axis] == 1) continue;
    const int last = sizes.rank() - 1;
    if (last >= 0 && result.strides[last] == strides[axis] * base[axis]) {
      sizes[last] *= base[axis];
      result.strides[last] = strides[axis];
    } else {
      sizes.push_back(base[axis]);
      result.strides.push_back(strides[axis]);
    }
  }
  return result;
}

/// The indices that a view reaches in a base: every axis of the base must hold them.
struct Reach {
  Dims low;
  Dims high;
};

/// The memory stride of an axis of `size` elements that steps by `stride` in row-major order: the step is split over
/// the base's axes, the outermost first, and must not wrap around any of them.
std::optional<std::int64_t> memory_stride(std::int64_t stride, std::int64_t size, const Shape& base,
                                          const Strides& base_strides, Reach& reach) {
  const Strides order = contiguous_strides(base);
  const std::int64_t sign = stride < 0 ? -1 : 1;
  std::int64_t rest = stride * sign;
  std::int64_t total = 0;
  for (int axis = 0; axis < base.rank(); ++axis) {
    const std::int64_t step = rest / order[axis];
    rest %= order[axis];
    std::int64_t& end = sign > 0 ? reach.high[axis] : reach.low[axis];
    end += sign * step * (size - 1);
    if (end < 0 || end >= base[axis]) return std::nullopt;
    total += sign * step * base_strides[axis];
  }
  return rest == 0 ? std::optional(total) : std::nullopt;
}

}  // namespace

std::optional<Affine> resolve_view(const ops::View& view, const Shape& sizes, const Shape& base,
                                   const Strides& base_strides) {
  if (base_strides == contiguous_strides(base)) return Affine{view.offset, view.strides};
  if (view.dynamic || numel(base) == 0 || numel(sizes) == 0) return std::nullopt;
  Shape axes;
  const Affine memory = merged(base, base_strides, axes);
  Reach reach{unravel(view.offset, axes), unravel(view.offset, axes)};
  Affine result;
  for (int axis = 0; axis < axes.rank(); ++axis) result.offset += reach.low[axis] * memory.strides[axis];
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] == 1 || view.strides[axis] == 0) {
      result.strides.push_back(0);
      continue;
    }
    const auto stride = memory_stride(view.strides[axis], sizes[axis], axes, memory.strides, reach);
    if (!stride) return std::nullopt;
    result.strides.push_back(*stride);
  }
  return result;
}

std::optional<ops::View> compose_views(const ops::View& outer, const Shape& outer_sizes, const ops::View& inner,
                                       const Shape& inner_sizes) {
  if (outer.dynamic) return std::nullopt;
  const std::optional<Affine> affine = resolve_view(outer, outer_sizes, inner_sizes, inner.strides);
  if (!affine) return std::nullopt;
  return ops::View{affine->strides, affine->offset + inner.offset, inner.dynamic};
}

bool is_identity(const ops::View& view, const Shape& sizes, const Shape& base) {
  if (view.dynamic || view.offset != 0 || sizes != base) return false;
  const Strides order = contiguous_strides(base);
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] > 1 && view.strides[axis] != order[axis]) return false;
  }
  return true;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides result = Strides::filled(to.rank(), 0);
  const int added = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) result[axis + added] = strides[axis];
  }
  return result;
}

}  // namespace russet::compile
