#include "device/cpu/group/tiling.h"

#include <algorithm>
#include <cstdlib>

#include "device/cpu/workers.h"
#include "graph/strided.h"

namespace russet::cpu::tiles {
namespace {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

/// An axis of the index space with each access's stride.
struct Axis {
  std::int64_t size = 1;
  bool reduced = false;
  std::vector<std::int64_t> strides;
};

bool is_reduced_axis(const Group& group, int axis) {
  if (group.kind == Group::Kind::elementwise) return false;
  return (axis >= group.split) == (group.kind == Group::Kind::row);
}

/// Which accesses only instructions of reduced extent use. They do not vary along reduced axes, so their strides there
/// are ignored.
std::vector<bool> accesses_of_reduced(const Group& group) {
  std::vector<bool> reduced(group.accesses.size(), true);
  for (const Instruction& instruction : group.code) {
    if (instruction.access >= 0 && instruction.extent == Extent::full) {
      reduced[static_cast<std::size_t>(instruction.access)] = false;
    }
  }
  return reduced;
}

std::vector<Axis> axes_of(const Group& group) {
  const std::vector<bool> reduced = accesses_of_reduced(group);
  std::vector<Axis> axes;
  for (int axis = 0; axis < group.space.rank(); ++axis) {
    if (group.space[axis] == 1) continue;
    Axis result{group.space[axis], is_reduced_axis(group, axis), {}};
    for (std::size_t i = 0; i < group.accesses.size(); ++i) {
      result.strides.push_back(result.reduced && reduced[i] ? 0 : group.accesses[i].strides[axis]);
    }
    axes.push_back(std::move(result));
  }
  return axes;
}

/// The access whose memory order decides the order of the axes: the first store of an elementwise group, else the full
/// load that reads most memory.
int leading_access(const Group& group, const std::vector<Axis>& axes) {
  int best = -1;
  std::int64_t most = -1;
  for (const Instruction& instruction : group.code) {
    if (instruction.extent != Extent::full || instruction.access < 0 || instruction.kind == Kind::index) continue;
    if (group.kind == Group::Kind::elementwise) {
      if (instruction.kind == Kind::store) return instruction.access;
      continue;
    }
    std::int64_t touched = 1;
    for (const Axis& axis : axes) {
      if (axis.strides[static_cast<std::size_t>(instruction.access)] != 0) touched *= axis.size;
    }
    if (touched > most) {
      most = touched;
      best = instruction.access;
    }
  }
  return best;
}

/// Sorts axes of one kind by falling strides of `access`, unless it is constant along one of them.
void sort_axes(std::vector<Axis>& axes, bool reduced, int access) {
  if (access < 0) return;
  const auto stride = [&](const Axis& axis) { return std::abs(axis.strides[static_cast<std::size_t>(access)]); };
  std::vector<Axis> chosen;
  for (const Axis& axis : axes) {
    if (axis.reduced != reduced) continue;
    if (stride(axis) == 0) return;
    chosen.push_back(axis);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Axis& a, const Axis& b) { return stride(a) > stride(b); });
  auto next = chosen.begin();
  for (Axis& axis : axes) {
    if (axis.reduced == reduced) axis = *next++;
  }
}

void merge_axes(std::vector<Axis>& axes) {
  Shape sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  const auto at = [&](int axis) -> const Axis& { return axes[static_cast<std::size_t>(axis)]; };
  const auto joined = graph::merged_axes(
      sizes, axes.empty() ? 0 : axes.front().strides.size(),
      [&](std::size_t access, int axis) { return at(axis).strides[access]; },
      [&](int axis) { return axis > 0 && at(axis).reduced != at(axis - 1).reduced; });
  std::vector<Axis> merged;
  merged.reserve(joined.size());
  for (const graph::MergedAxis& axis : joined)
    merged.push_back({axis.size, at(axis.last).reduced, at(axis.last).strides});
  axes = std::move(merged);
}

Nest nest_of(const Group& group, const std::vector<Axis>& outer, const std::vector<Axis>& inner) {
  Nest nest;
  for (const Axis& axis : outer) nest.outer.push_back(axis.size);
  for (const Axis& axis : inner) nest.inner.push_back(axis.size);
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    const Access& access = group.accesses[i];
    TileView view{access.slot, access.dtype, access.offset, access.offset_argument, {}, {}};
    for (const Axis& axis : outer) view.outer.push_back(axis.strides[i]);
    for (const Axis& axis : inner) view.inner.push_back(axis.strides[i]);
    nest.views.push_back(std::move(view));
  }
  return nest;
}

std::vector<Axis> axes_where(const std::vector<Axis>& axes, bool reduced) {
  std::vector<Axis> result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result),
               [&](const Axis& axis) { return axis.reduced == reduced; });
  return result;
}

/// Equal pieces of at most `most`, whole vectors but for the last one.
std::int64_t even_piece(std::int64_t size, std::int64_t most) {
  if (size <= most) return std::max<std::int64_t>(size, 1);
  const std::int64_t piece = divide_up(size, divide_up(size, most));
  return std::min(divide_up(piece, 64) * 64, most);
}

/// Moves an axis along which some access is dense, while it is not along the last one, next to the last: then tiles
/// are squares that use whole cache lines of both.
bool gather_transposed_axis(std::vector<Axis>& axes) {
  constexpr std::int64_t worthwhile = 8;
  if (axes.size() < 2 || axes.back().size < worthwhile) return false;
  for (std::size_t access = 0; access < axes.back().strides.size(); ++access) {
    if (std::abs(axes.back().strides[access]) <= 1) continue;
    for (std::size_t axis = 0; axis + 1 < axes.size(); ++axis) {
      if (std::abs(axes[axis].strides[access]) != 1 || axes[axis].size < worthwhile) continue;
      std::rotate(axes.begin() + static_cast<std::ptrdiff_t>(axis),
                  axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, axes.end() - 1);
      return true;
    }
  }
  return false;
}

/// Rows of at least this many elements have tiles of their own.
constexpr std::int64_t long_row = 512;

Tiling plan_elementwise(const Group& group, std::vector<Axis> axes) {
  sort_axes(axes, false, leading_access(group, axes));
  merge_axes(axes);
  const bool transposed = gather_transposed_axis(axes);
  Tiling tiling;
  const auto last = axes.empty() ? axes.end() : axes.end() - 1;
  tiling.nest = nest_of(group, {axes.begin(), last}, {last, axes.end()});
  const std::int64_t columns = tiling.nest.columns();
  if (transposed) {
    tiling.nest.tile_columns = even_piece(columns, 64);
    tiling.nest.tile_rows = std::max<std::int64_t>(tile_target / tiling.nest.tile_columns, 1);
  } else if (columns >= long_row) {
    tiling.nest.tile_columns = even_piece(columns, tile_target);
  } else {
    tiling.nest.tile_columns = std::max<std::int64_t>(columns, 1);
    tiling.nest.tile_rows = tile_target / tiling.nest.tile_columns;
  }
  tiling.nest.tile_rows =
      std::clamp<std::int64_t>(tiling.nest.tile_rows, 1, std::max<std::int64_t>(tiling.nest.rows(), 1));
  return tiling;
}

bool has_positions(const Group& group) {
  return std::any_of(group.code.begin(), group.code.end(), [](const Instruction& instruction) {
    return instruction.kind == Kind::reduce && (instruction.op == ops::Op::argmax || instruction.op == ops::Op::argmin);
  });
}

/// Whether the leading access's dense axis is a kept one.
bool kept_axes_inside(const std::vector<Axis>& axes, int access) {
  std::int64_t smallest[2] = {INT64_MAX, INT64_MAX};
  for (const Axis& axis : axes) {
    const std::int64_t stride = access < 0 ? 0 : std::abs(axis.strides[static_cast<std::size_t>(access)]);
    if (stride != 0) smallest[axis.reduced] = std::min(smallest[axis.reduced], stride);
  }
  return smallest[0] < smallest[1];
}

void plan_whole_rows(Tiling& tiling) {
  Nest& nest = tiling.nest;
  nest.tile_columns = std::max<std::int64_t>(nest.columns(), 1);
  nest.tile_rows = nest.tile_columns >= long_row ? 1 : tile_target / nest.tile_columns;
  const bool transposed = std::any_of(nest.views.begin(), nest.views.end(), [](const TileView& view) {
    return !view.outer.empty() && !view.inner.empty() && std::abs(view.outer.back()) == 1 &&
           std::abs(view.inner.back()) > 1;
  });
  if (transposed) nest.tile_rows = std::max<std::int64_t>(nest.tile_rows, 16);
  nest.tile_rows = std::clamp<std::int64_t>(nest.tile_rows, 1, std::max<std::int64_t>(nest.rows(), 1));
}

/// Tile sizes and chunks of accumulating tilings.
void plan_accumulation(Tiling& tiling) {
  Nest& nest = tiling.nest;
  if (tiling.reduces_columns) {
    const std::int64_t run = nest.inner.empty() ? 1 : std::max<std::int64_t>(nest.inner.back(), 1);
    const std::int64_t before =
        nest.inner.rank() > 1 ? std::max<std::int64_t>(nest.inner[nest.inner.rank() - 2], 1) : 1;
    if (run >= 256 || nest.inner.rank() == 1) {
      nest.tile_columns = even_piece(run, tile_target);
    } else {
      // Short runs of several rows, so that neighbouring rows share cache lines and tiles are full.
      nest.tile_rows = std::clamp<std::int64_t>(1024 / run, 1, std::max<std::int64_t>(nest.rows(), 1));
      nest.tile_columns = run * std::clamp<std::int64_t>(tile_target / (run * nest.tile_rows), 1, before);
    }
  } else {
    nest.tile_columns = even_piece(nest.inner.empty() ? 1 : std::max<std::int64_t>(nest.inner.back(), 1), 512);
    nest.tile_rows =
        std::clamp<std::int64_t>(tile_target / nest.tile_columns, 1, std::max<std::int64_t>(nest.rows(), 1));
  }
  const std::int64_t kept =
      tiling.reduces_columns ? divide_up(nest.rows(), nest.tile_rows) : divide_up(nest.columns(), nest.tile_columns);
  const std::int64_t steps =
      tiling.reduces_columns ? divide_up(nest.columns(), nest.tile_columns) : divide_up(nest.rows(), nest.tile_rows);
  // Enough pieces of work for many threads, none of them too small.
  constexpr std::int64_t pieces = 64;
  constexpr std::int64_t fewest_steps = 8;
  tiling.chunks = std::clamp<std::int64_t>(divide_up(pieces, std::max<std::int64_t>(kept, 1)), 1,
                                           std::max<std::int64_t>(steps / fewest_steps, 1));
  tiling.steps_per_chunk = std::max<std::int64_t>(divide_up(steps, tiling.chunks), 1);
  tiling.chunks = std::max<std::int64_t>(divide_up(steps, tiling.steps_per_chunk), 1);
  tiling.kept.tile_columns = tiling.reduces_columns ? nest.tile_rows : nest.tile_columns;
}

}  // namespace

Tiling tile_group(const Group& group, bool needs_rows) {
  std::vector<Axis> axes = axes_of(group);
  if (group.kind == Group::Kind::elementwise) return plan_elementwise(group, std::move(axes));
  const int leading = leading_access(group, axes);
  sort_axes(axes, false, leading);
  if (!has_positions(group)) sort_axes(axes, true, leading);
  std::vector<Axis> kept = axes_where(axes, false);
  std::vector<Axis> reduced = axes_where(axes, true);
  merge_axes(kept);
  merge_axes(reduced);

  Tiling tiling;
  tiling.reduces_columns = needs_rows || reduced.empty() || !kept_axes_inside(axes, leading);
  tiling.nest = tiling.reduces_columns ? nest_of(group, kept, reduced) : nest_of(group, reduced, kept);
  constexpr std::int64_t longest_whole_row = 4096;
  if (needs_rows || (tiling.reduces_columns && tiling.nest.columns() <= longest_whole_row)) {
    plan_whole_rows(tiling);
    return tiling;
  }
  tiling.mode = Tiling::Mode::accumulate;
  tiling.kept = nest_of(group, {}, kept);
  plan_accumulation(tiling);
  return tiling;
}

}  // namespace russet::cpu::tiles
