#pragma once
// Geometry: how a group's index space is cut into tiles.
#include <russet/shape.h>
#include <vector>

#include "compile/group.h"
#include "device/cpu/group/loops.h"

namespace russet::cpu::tiles {

/// An access with its strides divided into those along the outer and those along the inner axes of a nest.
struct TileView {
  std::int32_t slot = -1;
  DType dtype = DType::float32;
  std::int64_t offset = 0;
  std::int32_t offset_argument = -1;
  Strides outer;
  Strides inner;
};

/// Rows times columns: the flattened outer and the flattened inner axes. A tile is a rectangle of them.
struct Nest {
  Shape outer;
  Shape inner;
  std::vector<TileView> views;  // one for each access of the group
  std::int64_t tile_rows = 1;
  std::int64_t tile_columns = 1;

  std::int64_t rows() const { return numel(outer); }
  std::int64_t columns() const { return numel(inner); }
};

/// How a group runs.
struct Tiling {
  enum class Mode : std::uint8_t {
    direct,      // each tile alone: elementwise, or whole rows
    accumulate,  // tiles add to accumulators; what follows the reductions runs over `kept` afterwards
  };
  Mode mode = Mode::direct;
  Nest nest;
  /// accumulate: whether rows of the nest are kept and columns reduced, or the other way round.
  bool reduces_columns = true;
  /// accumulate: the kept axes as one row of columns.
  Nest kept;
  /// accumulate: how many parts of the reduced axes may run in parallel. It depends on the shapes alone, so that the
  /// order of additions does not depend on the number of threads.
  std::int64_t chunks = 1;
  /// accumulate: tiles along the reduced axes in one chunk.
  std::int64_t steps_per_chunk = 1;
};

/// Elements that a tile should hold.
inline constexpr std::int64_t tile_target = 2048;

/// Chooses axis order, mode and tile sizes. `needs_rows` says that full instructions follow a reduction.
Tiling tile_group(const compile::Group& group, bool needs_rows);

/// A position in flattened axes, its offset in memory, and how many elements are left on the last axis.
class Cursor {
 public:
  Cursor(const Shape& sizes, const Strides& strides, std::int64_t start) : sizes_(sizes), strides_(strides) {
    for (int axis = sizes.rank() - 1; axis >= 0 && start != 0; --axis) {
      index_[axis] = axis == 0 ? start : start % sizes[axis];
      start = axis == 0 ? 0 : start / sizes[axis];
      offset_ += index_[axis] * strides[axis];
    }
  }
  std::int64_t offset() const { return offset_; }
  /// Elements left on the last axis, and that axis's stride.
  std::int64_t room() const { return sizes_.empty() ? 1 : sizes_.back() - index_[sizes_.rank() - 1]; }
  std::int64_t stride() const { return sizes_.empty() ? 0 : strides_.back(); }
  bool at_start() const { return sizes_.empty() || index_[sizes_.rank() - 1] == 0; }
  /// Room and stride of the axis before the last one.
  std::int64_t room_before() const { return sizes_[sizes_.rank() - 2] - index_[sizes_.rank() - 2]; }
  std::int64_t stride_before() const { return strides_[sizes_.rank() - 2]; }
  /// Advances by `count` elements: within the last axis, or by whole rows of it.
  void advance(std::int64_t count) {
    int axis = sizes_.rank() - 1;
    if (axis < 0) return;
    if (axis > 0 && count > sizes_[axis]) {  // whole runs of the last axis
      count /= sizes_[axis];
      --axis;
    }
    index_[axis] += count;
    offset_ += count * strides_[axis];
    while (axis > 0 && index_[axis] == sizes_[axis]) {
      offset_ += strides_[axis - 1] - sizes_[axis] * strides_[axis];
      index_[axis] = 0;
      ++index_[--axis];
    }
  }

 private:
  const Shape& sizes_;
  const Strides& strides_;
  std::array<std::int64_t, max_rank> index_{};
  std::int64_t offset_ = 0;
};

/// A rectangle of a nest.
struct TileBounds {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
};

/// Calls body(element offset in memory, position in the tile, block) for the affine pieces of a box in a space of
/// these outer and inner axes.
template <class Body>
void for_each_block(const Shape& outer_sizes, const Shape& inner_sizes, const TileView& view, const TileBounds& box,
                    Body&& body) {
  Cursor outer(outer_sizes, view.outer, box.row);
  for (std::int64_t r = 0; r < box.rows;) {
    const std::int64_t rows = std::min(box.rows - r, outer.room());
    Cursor inner(inner_sizes, view.inner, box.column);
    for (std::int64_t c = 0; c < box.columns;) {
      const std::int64_t left = box.columns - c;
      const std::int64_t position = r * box.columns + c;
      const std::int64_t offset = outer.offset() + inner.offset();
      const std::int64_t run = std::min(left, inner.room());
      if (rows == 1 && inner_sizes.rank() > 1 && inner.at_start() && left >= 2 * run && run != 0) {
        // One row of several runs: the runs are rows of a block.
        const std::int64_t runs = std::min(left / run, inner.room_before());
        body(offset, position, Block{runs, inner.stride_before(), run, inner.stride(), run});
        c += runs * run;
        inner.advance(runs * run);
      } else {
        body(offset, position, Block{rows, outer.stride(), run, inner.stride(), box.columns});
        c += run;
        inner.advance(run);
      }
    }
    outer.advance(rows);
    r += rows;
  }
}

}  // namespace russet::cpu::tiles
