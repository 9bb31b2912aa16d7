#include "graph/geometry.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

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

  /// One of: a slice, a transposition, one index of an axis, an axis in two.
  Geometry of(const Geometry& geometry) {
    const int rank = geometry.sizes.rank();
    if (rank == 0) return geometry;
    const int axis = static_cast<int>(below(rank));
    const std::int64_t size = geometry.sizes[axis];
    switch (below(4)) {
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

TEST(Geometry, WhatIsNoViewOfAViewHasNoPlaceThere) {
  const Geometry row{{3}, {1}, 4};
  EXPECT_FALSE(within(row, {{3}, {1}, 3}));                  // begins before
  EXPECT_FALSE(within(row, {{3}, {1}, 5}));                  // ends behind
  EXPECT_FALSE(within({{3}, {2}, 0}, {{2}, {1}, 0}));        // between its elements
  EXPECT_FALSE(within({{3, 4}, {0, 1}, 0}, {{4}, {1}, 0}));  // elements share places
}

}  // namespace
}  // namespace russet::graph
