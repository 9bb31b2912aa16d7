#include "device/gpu/cuda/planning/column_major.h"

namespace russet::cuda {
namespace {

/// Two axes of an array: sizes, and how far neighbours are apart.
struct Plane {
  std::int64_t lines, line;
  std::int64_t steps, step;
};

/// The array column by column; `transposed` if its columns are lines, whose steps lie side by side.
std::optional<StoredMatrix> stored(const Plane& plane) {
  const bool steps_touch = plane.step == 1 || plane.steps == 1;
  if (steps_touch && (plane.line >= plane.steps || plane.lines == 1)) {
    return StoredMatrix{plane.steps, plane.lines, plane.lines == 1 ? plane.steps : plane.line, true};
  }
  const bool lines_touch = plane.line == 1 || plane.lines == 1;
  if (lines_touch && (plane.step >= plane.lines || plane.steps == 1)) {
    return StoredMatrix{plane.lines, plane.steps, plane.steps == 1 ? plane.lines : plane.step, false};
  }
  return std::nullopt;
}

/// A factor: its lines are rows or columns of the result, its steps go along the depth.
struct Factor {
  Plane plane;
  std::int64_t result_stride;  // between its lines, in the result
  const Strides& batch;
};

bool is_plain(const gpu::Contraction& c) {
  const bool flat = !c.left_line.splits && !c.left_step.splits && !c.right_line.splits && !c.right_step.splits &&
                    !c.row.splits && !c.column.splits;
  return flat && c.window == gpu::WindowSide::none && c.batch.rank() <= 1;
}

std::optional<ColumnMajorProduct> product_of(const Factor& first, const Factor& second) {
  const auto a = stored(first.plane);
  const auto b = stored(second.plane);
  // The result's columns are lines of the second factor.
  const auto result = stored({second.plane.lines, second.result_stride, first.plane.lines, first.result_stride});
  if (!a || !b || !result || !result->transposed) return std::nullopt;
  ColumnMajorProduct product{*a, *b, *result};
  product.second.transposed = !b->transposed;  // BLAS names the depth of the second factor first
  product.result.transposed = false;
  return product;
}

}  // namespace

std::optional<ColumnMajorProduct> column_major(const gpu::Contraction& c) {
  if (!is_plain(c) || c.rows == 0 || c.columns == 0 || c.depth == 0 || c.batches() == 0) return std::nullopt;
  constexpr int flat = 2;  // the one level of a flat axis
  const Factor left{
      {c.rows, c.left_line.strides[flat], c.depth, c.left_step.strides[flat]}, c.row.strides[flat], c.left_batch};
  const Factor right{{c.columns, c.right_line.strides[flat], c.depth, c.right_step.strides[flat]},
                     c.column.strides[flat],
                     c.right_batch};
  // A row-major result is the transpose of a column-major one.
  for (const bool swapped : {true, false}) {
    const Factor& first = swapped ? right : left;
    const Factor& second = swapped ? left : right;
    auto product = product_of(first, second);
    if (!product) continue;
    product->swapped = swapped;
    product->batches = c.batches();
    if (!c.batch.empty()) {
      product->first.batch_stride = first.batch[0];
      product->second.batch_stride = second.batch[0];
      product->result.batch_stride = c.result_batch[0];
    }
    return product;
  }
  return std::nullopt;
}

}  // namespace russet::cuda
