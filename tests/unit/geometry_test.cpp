#include <gtest/gtest.h>
#include <russet/russet.h>

#include <functional>
#include <random>
#include <vector>

#include "graph/strided.h"
#include "graph/tensor_state.h"

namespace russet::graph {
namespace {

/// The place of each element in row-major order of its index.
std::vector<std::int64_t> places(const Geometry& geometry) {
  std::vector<std::int64_t> found;
  const std::function<void(int, std::int64_t)> visit = [&](int axis, std::int64_t place) {
    if (axis == geometry.sizes.rank()) return found.push_back(place);
    for (std::int64_t i = 0; i < geometry.sizes[axis]; ++i) visit(axis + 1, place + i * geometry.strides[axis]);
  };
  visit(0, geometry.offset);
  return found;
}

class Views {
 public:
  explicit Views(unsigned seed) : random_(seed) {}

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

  /// One of: a slice, a transposition, one index of an axis, a diagonal, an axis in two.
  Geometry of(const Geometry& geometry) {
    const int rank = geometry.sizes.rank();
    if (rank == 0) return geometry;
    const int axis = static_cast<int>(below(rank));
    const std::int64_t size = geometry.sizes[axis];
    switch (below(5)) {
      case 0: {
        const std::int64_t start = below(size), step = 1 + below(2);
        return sliced(geometry, axis, start, (size - start + step - 1) / step, step);
      }
      case 1: {
        Dims axes = Dims::filled(rank, 0);
        for (int i = 0; i < rank; ++i) axes[i] = (i + axis) % rank;
        return permuted(geometry, axes);
      }
      case 2: return selected(geometry, axis, below(size));
      case 3: return rank < 2 ? geometry : diagonal(geometry, 0, axis, (axis + 1) % rank);
      default: {
        if (size % 2 != 0 || rank > 5) return geometry;
        Shape sizes = geometry.sizes;
        sizes[axis] /= 2;
        sizes.insert(axis + 1, 2);
        return viewed(geometry, sizes).value_or(geometry);
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST(Geometry, AViewOfAViewHasItsPlaceInThatView) {
  Views views(11);
  for (int round = 0; round < 2000; ++round) {
    Geometry outer = Geometry::contiguous({4, 6, 2, 3});
    for (std::int64_t i = views.below(4); i > 0; --i) outer = views.of(outer);
    Geometry inner = outer;
    for (std::int64_t i = views.below(4); i > 0; --i) inner = views.of(inner);
    const auto inside = within(outer, inner);
    ASSERT_TRUE(inside) << to_string(outer.sizes) << to_string(outer.strides) << outer.offset << " holds "
                        << to_string(inner.sizes) << to_string(inner.strides) << inner.offset;
    const std::vector<std::int64_t> of_outer = places(outer), of_inner = places(inner), found = places(*inside);
    ASSERT_EQ(found.size(), of_inner.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(of_outer.at(static_cast<std::size_t>(found[i])), of_inner[i]) << "round " << round;
    }
  }
}

TEST(Geometry, AViewMayRunOverSeveralAxes) {
  const Geometry rows{{3, 2, 4}, {10, 4, 1}, 5};  // whose last two axes are one
  EXPECT_EQ(within(rows, {{8}, {1}, 15}), (Geometry{{8}, {1}, 8}));
  EXPECT_EQ(within(rows, {{2, 2}, {10, 6}, 6}), (Geometry{{2, 2}, {8, 6}, 1}));
  EXPECT_FALSE(within(rows, {{9}, {1}, 5}));  // over the gap between rows
}

TEST(Strided, AResolvedViewShowsTheSameElements) {
  Views views(12);
  int resolved = 0;
  for (int round = 0; round < 2000; ++round) {
    const Shape base{4, 6, 2, 3};
    const Geometry contiguous = Geometry::contiguous(base);
    // A memory order of the base: the strides of its axes when they are permuted.
    Dims order{0, 1, 2, 3};
    for (int i = 3; i > 0; --i) std::swap(order[i], order[static_cast<int>(views.below(i + 1))]);
    Strides strides = Strides::filled(4, 0);
    std::int64_t next = 1;
    for (const std::int64_t axis : order) {
      strides[static_cast<int>(axis)] = next;
      next *= base[static_cast<int>(axis)];
    }
    Geometry view = contiguous;
    for (std::int64_t i = views.below(5); i > 0; --i) view = views.of(view);
    const auto found = resolve_view({view.strides, view.offset, false}, view.sizes, base, strides);
    if (!found) continue;
    ++resolved;
    const std::vector<std::int64_t> memory = places({base, strides, 0}), shown = places(*found);
    const std::vector<std::int64_t> wanted = places(view);
    ASSERT_EQ(shown.size(), wanted.size());
    for (std::size_t i = 0; i < shown.size(); ++i) {
      ASSERT_EQ(shown[i], memory.at(static_cast<std::size_t>(wanted[i]))) << "round " << round;
    }
  }
  EXPECT_EQ(resolved, 2000) << "no view of these wraps around an axis";
  EXPECT_FALSE(resolve_view({{1}, 0, false}, {6}, {2, 3}, {1, 2}));  // the whole, row by row, of columns
  EXPECT_FALSE(resolve_view({{2}, 0, false}, {3}, {2, 3}, {1, 2}));  // 0, 2, 4
}

TEST(Strided, AxesThatGoOnAreOne) {
  const auto merged = [](const Shape& sizes, const std::vector<Strides>& maps, int apart = -1) {
    Shape result;
    for (const MergedAxis& run : merged_axes(
             sizes, maps.size(), [&](std::size_t map, int axis) { return maps[map][axis]; },
             [&](int axis) { return axis == apart; })) {
      result.push_back(run.size);
    }
    return result;
  };
  EXPECT_EQ(merged({2, 3, 4}, {{12, 4, 1}}), Shape({24}));
  EXPECT_EQ(merged({2, 3, 4}, {{12, 4, 1}, {0, 4, 1}}), Shape({2, 12}));
  EXPECT_EQ(merged({2, 1, 3, 1, 4}, {{12, 7, 4, 9, 1}}), Shape({24}));
  EXPECT_EQ(merged({2, 1, 3, 1, 4}, {{12, 7, 4, 9, 1}}, 3), Shape({6, 4}));
  EXPECT_EQ(merged({1, 1}, {{1, 1}}), Shape{});
  EXPECT_EQ(merged({2, 3}, {}), Shape({6}));
}

TEST(Strided, OrdersAreToldApart) {
  EXPECT_TRUE(is_row_major({2, 1, 3}, {3, 77, 1}));
  EXPECT_FALSE(is_row_major({2, 3}, {1, 2}));
  const ops::View swapped{{12, 1, 4}, 0, false};
  EXPECT_TRUE(is_transpose(swapped, {2, 4, 3}, {2, 3, 4}));
  EXPECT_FALSE(is_transpose(swapped, {2, 3, 4}, {2, 4, 3}));
  EXPECT_FALSE(is_transpose({{1}, 0, false}, {4}, {4}));  // there are no two axes
  EXPECT_FALSE(is_transpose({{}, 0, false}, {}, {}));
  EXPECT_TRUE(is_reordering({{1, 12, 4}, 0, false}, {4, 2, 3}, {2, 3, 4}));
  EXPECT_FALSE(is_reordering({{1, 12, 0}, 0, false}, {4, 2, 3}, {2, 3, 4}));
  EXPECT_TRUE(is_identity({{12, 4, 1}, 0, false}, {2, 3, 4}, {2, 3, 4}));
  EXPECT_FALSE(is_identity({{12, 4, 1}, 1, false}, {2, 3, 4}, {2, 3, 4}));
}

TEST(Geometry, WhatIsNoViewOfAViewHasNoPlaceThere) {
  const Geometry row{{3}, {1}, 4};
  EXPECT_FALSE(within(row, {{3}, {1}, 3}));                  // begins before
  EXPECT_FALSE(within(row, {{3}, {1}, 5}));                  // ends behind
  EXPECT_FALSE(within({{3}, {2}, 0}, {{2}, {1}, 0}));        // between its elements
  EXPECT_FALSE(within({{3, 4}, {0, 1}, 0}, {{4}, {1}, 0}));  // elements share places
}

// Where all of memory begins follows from the strides; where a part does may change from step to step, so that a plan
// for one serves the other.
TEST(Views, OfPartsOfMemoryBeginWhereTheRunSays) {
  const Tensor memory = zeros({4, 6});
  flush();
  const NodeRef base = value_of(memory);
  const auto is_dynamic = [&](const Tensor& view) {
    return std::get<ops::View>(view_info(view.state()->geometry, *base).attributes).dynamic;
  };
  EXPECT_FALSE(is_dynamic(memory));
  EXPECT_FALSE(is_dynamic(memory.t()));
  EXPECT_FALSE(is_dynamic(memory.reshape({2, 2, 6}).permute({2, 0, 1})));
  EXPECT_TRUE(is_dynamic(memory[0]));
  EXPECT_TRUE(is_dynamic(memory.narrow(1, 2, 3)));
  EXPECT_TRUE(is_dynamic(memory[1].expand({4, 6})));  // as many elements, but one row
}

}  // namespace
}  // namespace russet::graph
