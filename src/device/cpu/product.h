#pragma once
// Product: every contraction as batches of matrix products c[i, j] = sum over k of a[i, k] * b[k, j], where the
// matrices lie in memory in any way that strides and sliding windows describe. What our own kernels compute.
#include <array>

#include "compile/step.h"

namespace russet::cpu {

/// Rows or columns of a matrix, counted over up to three nested axes.
struct Side {
  std::array<std::int64_t, 3> size{1, 1, 1};
  std::array<std::int64_t, 3> step{};    // in memory, in elements
  std::array<std::int64_t, 3> height{};  // in the plane that a window moves over
  std::array<std::int64_t, 3> width{};

  std::int64_t count() const { return size[0] * size[1] * size[2]; }
  /// Whether the side is one axis with a constant step.
  bool plain() const { return size[0] == 1 && size[1] == 1; }
};

/// A matrix in memory. If it is `in_plane`, its elements are read through a window: element (i, j) lies at height
/// (origin + height of row i + height of column j) / divisor, the same for the width. It is zero where the division
/// leaves a remainder (between the elements of a stride) or the position is outside the plane (padding).
struct Matrix {
  Side rows, columns;
  bool in_plane = false;
  std::int64_t origin_height = 0, origin_width = 0;
  std::int64_t divisor_height = 1, divisor_width = 1;
  std::int64_t plane_height = 1, plane_width = 1;
  std::int64_t step_height = 0, step_width = 0;  // in memory, in elements
  Strides batch_strides;

  Matrix transposed() const {
    Matrix other = *this;
    std::swap(other.rows, other.columns);
    return other;
  }
};

struct Product {
  DType dtype = DType::float32;
  Shape batch;
  Matrix a, b, c;  // c is never in a plane
  int a_input = 0, b_input = 1;
  bool turned = false;  // a and b are exchanged and all matrices transposed

  std::int64_t rows() const { return c.rows.count(); }
  std::int64_t columns() const { return c.columns.count(); }
  std::int64_t inner() const { return a.columns.count(); }
  /// Where a matrix of the batch begins.
  std::int64_t batch_offset(const Matrix& matrix, std::int64_t number) const {
    std::int64_t offset = 0;
    for (int axis = batch.rank() - 1; axis >= 0; --axis) {
      offset += number % batch[axis] * matrix.batch_strides[axis];
      number /= batch[axis];
    }
    return offset;
  }
  double multiply_adds() const {
    return static_cast<double>(numel(batch)) * static_cast<double>(rows()) * static_cast<double>(columns()) *
           static_cast<double>(inner());
  }
};

/// The product that a contraction (matmul, convolution, convolution_input, convolution_weight) computes, turned so that
/// neighbouring columns of c are neighbours in memory where that is possible.
Product product_of(const compile::Primitive& contraction);

/// The output as a matrix, with the same rows and columns as in product_of, but none of its axes merged.
Matrix result_matrix(const compile::Primitive& contraction, bool turned);

}  // namespace russet::cpu
