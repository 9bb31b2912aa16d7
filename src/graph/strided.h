#pragma once
// The algebra of strides: the same elements seen from other memory, through another view, with other axes. For tensors,
// compiler and devices alike.
#include <optional>
#include <vector>

#include "graph/geometry.h"
#include "ops/attributes.h"

namespace russet::graph {

/// Whether both strides lead from each index to the same place: those of axes with one element do not matter.
bool same_places(const Shape& sizes, const Strides& a, const Strides& b);
/// Whether elements lie one after the other in row-major order.
bool is_row_major(const Shape& sizes, const Strides& strides);

/// Strides for reading a value of shape `from` (lying with `strides`) at an index of the broadcast shape `to`.
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

/// Elements of an array of the sizes `base` that lie in memory with the strides `from`, where the array lies with the
/// strides `to` instead; both begin at 0. No elements of the array share a place in `from`. Nothing if `view` is not
/// all within the array, or has no strides in `to`.
std::optional<Geometry> moved(const Geometry& view, const Shape& base, const Strides& from, const Strides& to);

/// A view (of shape `sizes`, given on the row-major order of `base`) in memory in which `base` lies with
/// `base_strides`. Nothing if that has no strides.
std::optional<Geometry> resolve_view(const ops::View& view, const Shape& sizes, const Shape& base,
                                     const Strides& base_strides);
/// `outer` of shape `outer_sizes` on a value that is itself `inner` (of shape `inner_sizes`) on a base: one view on the
/// base. Nothing if that has no strides.
std::optional<ops::View> compose_views(const ops::View& outer, const Shape& outer_sizes, const ops::View& inner,
                                       const Shape& inner_sizes);
/// Whether the view reads the base in its own order and whole.
bool is_identity(const ops::View& view, const Shape& sizes, const Shape& base);
/// Whether the view swaps the last two axes of the base, if it has two.
bool is_transpose(const ops::View& view, const Shape& sizes, const Shape& base);
/// Whether the view shows all elements of the base in another order of axes.
bool is_reordering(const ops::View& view, const Shape& sizes, const Shape& base);

/// Whether two views of one base, none of which moves from run to run, are known to share no element.
bool are_disjoint(const ops::View& a, const Shape& a_sizes, const ops::View& b, const Shape& b_sizes);

/// Neighbouring axes that are one: the last of them, and how many elements they have together.
struct MergedAxis {
  int last = 0;
  std::int64_t size = 1;
};

/// The axes of `sizes` without those of one element, neighbours joined where in all maps one goes on where the other
/// ends. `stride(map, axis)`; `apart(axis)`: not to be joined with the axis before it.
template <class Stride, class Apart>
std::vector<MergedAxis> merged_axes(const Shape& sizes, std::size_t maps, Stride stride, Apart apart) {
  std::vector<MergedAxis> merged;
  bool separate = true;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    separate |= apart(axis);
    if (sizes[axis] == 1) continue;
    bool joins = !separate;
    for (std::size_t map = 0; joins && map < maps; ++map) {
      joins = stride(map, merged.back().last) == stride(map, axis) * sizes[axis];
    }
    if (joins) {
      merged.back() = {axis, merged.back().size * sizes[axis]};
    } else {
      merged.push_back({axis, sizes[axis]});
    }
    separate = false;
  }
  return merged;
}

}  // namespace russet::graph
