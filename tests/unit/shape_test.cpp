#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/shape.h>

namespace russet {
namespace {

TEST(Dims, IsAShortList) {
  Dims dims{2, 3, 4};
  EXPECT_EQ(dims.rank(), 3);
  EXPECT_EQ(dims.back(), 4);
  dims.insert(1, 7);
  EXPECT_EQ(dims, (Dims{2, 7, 3, 4}));
  dims.insert(4, 9);
  EXPECT_EQ(dims, (Dims{2, 7, 3, 4, 9}));
  dims.erase(0);
  EXPECT_EQ(dims, (Dims{7, 3, 4, 9}));
  EXPECT_NE(dims, (Dims{7, 3, 4}));
  EXPECT_EQ(Dims::filled(2, 5), (Dims{5, 5}));
}

TEST(Dims, HasAtMostEightAxes) {
  Dims dims = Dims::filled(8, 1);
  EXPECT_THROW(dims.push_back(1), ShapeError);
  EXPECT_EQ(dims.rank(), 8);
}

TEST(Dims, Text) {
  EXPECT_EQ(to_string(Dims{}), "[]");
  EXPECT_EQ(to_string(Dims{5}), "[5]");
  EXPECT_EQ(to_string(Dims{2, -1, 0}), "[2, -1, 0]");
}

TEST(Shape, ElementsAndStrides) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3}), 6);
  EXPECT_EQ(numel({2, 0, 3}), 0);
  EXPECT_EQ(numel({1 << 20, 1 << 20}), std::int64_t{1} << 40);
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  // torch.empty(2, 0, 4).stride()
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Strides{4, 4, 1}));
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast({2, 3}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({}, {4, 1}), (Shape{4, 1}));
  EXPECT_EQ(broadcast({8, 1, 6, 1}, {7, 1, 5}), (Shape{8, 7, 6, 5}));
  EXPECT_EQ(broadcast({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast({3, 1}, {0}), (Shape{3, 0}));
  EXPECT_THROW(broadcast({2}, {0}), ShapeError);
  EXPECT_THROW(broadcast({2, 3}, {2}), ShapeError);
}

TEST(Broadcast, ErrorNamesBothShapes) {
  try {
    broadcast({3}, {2, 4});
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "shapes [3] and [2, 4] do not broadcast: dimension 1 from the end has sizes 3 and 4");
  }
}

TEST(WrapAxis, CountsFromTheEnd) {
  EXPECT_EQ(wrap_axis(0, 3), 0);
  EXPECT_EQ(wrap_axis(-1, 3), 2);
  EXPECT_EQ(wrap_axis(-3, 3), 0);
  EXPECT_EQ(wrap_axis(-1, 0), 0);
  EXPECT_EQ(wrap_axis(0, 0), 0);
  EXPECT_THROW(wrap_axis(3, 3), IndexError);
  EXPECT_THROW(wrap_axis(-4, 3), IndexError);
  EXPECT_THROW(wrap_axis(1, 0), IndexError);
}

}  // namespace
}  // namespace russet
