// Contractions as BLAS's products: each element of what BLAS would read and write is that of the contraction.
#include "device/gpu/cuda/planning/column_major.h"

#include <gtest/gtest.h>

namespace russet::cuda {
namespace {

constexpr int flat = 2;

/// How an array of two axes lies in memory.
enum class Order { by_line, by_step };

gpu::ContractionAxis axis_of(std::int64_t stride) {
  gpu::ContractionAxis axis;
  axis.strides[flat] = stride;
  return axis;
}

/// A contraction whose arrays lie in these orders, each line padded by `gap` elements.
gpu::Contraction contraction_of(std::int64_t rows, std::int64_t columns, std::int64_t depth, Order left, Order right,
                                Order result, std::int64_t gap) {
  const auto strides = [&](Order order, std::int64_t lines,
                           std::int64_t steps) -> std::pair<std::int64_t, std::int64_t> {
    if (order == Order::by_line) return {steps + gap, 1};
    return {1, lines + gap};
  };
  gpu::Contraction c;
  c.rows = rows;
  c.columns = columns;
  c.depth = depth;
  const auto [left_line, left_step] = strides(left, rows, depth);
  const auto [right_line, right_step] = strides(right, columns, depth);
  const auto [row, column] = strides(result, rows, columns);
  c.left_line = axis_of(left_line);
  c.left_step = axis_of(left_step);
  c.right_line = axis_of(right_line);
  c.right_step = axis_of(right_step);
  c.row = axis_of(row);
  c.column = axis_of(column);
  return c;
}

/// Where BLAS finds element (i, j) of a matrix, transposed if it is to be.
std::int64_t place(const StoredMatrix& matrix, std::int64_t i, std::int64_t j) {
  if (matrix.transposed) std::swap(i, j);
  EXPECT_LT(i, matrix.rows);
  EXPECT_LT(j, matrix.columns);
  return i + j * matrix.leading;
}

void expect_same_elements(const gpu::Contraction& c, const ColumnMajorProduct& product) {
  EXPECT_GE(product.first.leading, product.first.rows);
  EXPECT_GE(product.second.leading, product.second.rows);
  EXPECT_GE(product.result.leading, product.result.rows);
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t column = 0; column < c.columns; ++column) {
      const std::int64_t i = product.swapped ? column : row;
      const std::int64_t j = product.swapped ? row : column;
      EXPECT_EQ(place(product.result, i, j), row * c.row.strides[flat] + column * c.column.strides[flat]);
      for (std::int64_t step = 0; step < c.depth; ++step) {
        const StoredMatrix& left = product.swapped ? product.second : product.first;
        const StoredMatrix& right = product.swapped ? product.first : product.second;
        const std::int64_t of_left = product.swapped ? place(left, step, row) : place(left, row, step);
        const std::int64_t of_right = product.swapped ? place(right, column, step) : place(right, step, column);
        EXPECT_EQ(of_left, row * c.left_line.strides[flat] + step * c.left_step.strides[flat]);
        EXPECT_EQ(of_right, column * c.right_line.strides[flat] + step * c.right_step.strides[flat]);
      }
    }
  }
}

TEST(ColumnMajor, TakesEveryOrder) {
  for (const Order left : {Order::by_line, Order::by_step}) {
    for (const Order right : {Order::by_line, Order::by_step}) {
      for (const Order result : {Order::by_line, Order::by_step}) {
        for (const auto& [rows, columns, depth] : {std::array{3, 4, 5}, {1, 4, 5}, {3, 1, 5}, {3, 4, 1}, {1, 1, 1}}) {
          const gpu::Contraction c = contraction_of(rows, columns, depth, left, right, result, 2);
          const auto product = column_major(c);
          ASSERT_TRUE(product.has_value());
          expect_same_elements(c, *product);
        }
      }
    }
  }
}

TEST(ColumnMajor, CountsBatches) {
  gpu::Contraction c = contraction_of(3, 4, 5, Order::by_line, Order::by_line, Order::by_line, 0);
  c.batch = {7};
  c.left_batch = {15};
  c.right_batch = {0};  // one for all
  c.result_batch = {12};
  const auto product = column_major(c);
  ASSERT_TRUE(product.has_value());
  EXPECT_EQ(product->batches, 7);
  EXPECT_TRUE(product->swapped);
  EXPECT_EQ(product->first.batch_stride, 0);
  EXPECT_EQ(product->second.batch_stride, 15);
  EXPECT_EQ(product->result.batch_stride, 12);
}

TEST(ColumnMajor, RefusesWhatIsNoMatrix) {
  const gpu::Contraction good = contraction_of(3, 4, 5, Order::by_line, Order::by_line, Order::by_line, 0);
  ASSERT_TRUE(column_major(good).has_value());
  gpu::Contraction c = good;
  c.left_step.strides[flat] = 2;  // neither axis is dense
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.left_line.strides[flat] = 2;  // lines overlap
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.right_step.strides[flat] = -1;
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.row.splits = true;
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.window = gpu::WindowSide::left;
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.depth = 0;
  EXPECT_FALSE(column_major(c).has_value());
  c = good;
  c.batch = c.left_batch = c.right_batch = c.result_batch = {2, 3};
  EXPECT_FALSE(column_major(c).has_value());
}

}  // namespace
}  // namespace russet::cuda
