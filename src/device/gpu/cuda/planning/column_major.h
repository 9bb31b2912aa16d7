#pragma once
// A contraction as BLAS counts products: matrices column by column, with one of them transposed where need be.
#include <optional>

#include "device/gpu/templates/contraction.h"

namespace russet::cuda {

/// A matrix in memory: element (i, j) at i + j * leading.
struct StoredMatrix {
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool transposed = false;  // the product takes its transpose
  std::int64_t batch_stride = 0;
};

/// result = first * second, for each of the batches.
struct ColumnMajorProduct {
  StoredMatrix first, second, result;
  std::int64_t batches = 1;
  bool swapped = false;  // the first factor is the contraction's right one
};

/// Nothing if strides, windows or batches are such that it is no such product.
std::optional<ColumnMajorProduct> column_major(const gpu::Contraction& contraction);

}  // namespace russet::cuda
