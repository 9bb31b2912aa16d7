#include "device/cpu/blas.h"

#include <cblas.h>
#include <algorithm>
#include <limits>
#include <optional>

#include "base/parallel.h"
#include "device/cpu/operand.h"
#include "device/cpu/product.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Primitive;

/// Blocks of the result are cut by sizes alone, so that the bits do not depend on the number of threads. OpenBLAS works
/// on one thread; ours share out the blocks.
constexpr std::int64_t block = 256;

/// Whether rows or columns of a matrix are without gaps, and which.
struct Order {
  CBLAS_TRANSPOSE transposed;
  int leading;
};

std::optional<Order> order_of(const Matrix& matrix) {
  const std::int64_t rows = matrix.rows.count();
  const std::int64_t columns = matrix.columns.count();
  const std::int64_t row = matrix.rows.step[2];
  const std::int64_t column = matrix.columns.step[2];
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (std::max({rows, columns, row, column}) > most) return std::nullopt;
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    return Order{CblasNoTrans, static_cast<int>(std::max(row, columns))};
  }
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    return Order{CblasTrans, static_cast<int>(std::max(column, rows))};
  }
  return std::nullopt;
}

class BlasProduct final : public compile::Kernel {
 public:
  BlasProduct(const Primitive& primitive, Product product)
      : product_(std::move(product)),
        a_(input_access(primitive, product_.a_input)),
        b_(input_access(primitive, product_.b_input)),
        c_(primitive.output.access),
        a_order_(*order_of(product_.a)),
        b_order_(*order_of(product_.b)),
        c_order_(*order_of(product_.c)) {}

  std::string name() const override { return "openblas"; }

  void run(const Bindings& bindings) const override {
    const std::int64_t rows = (product_.rows() + block - 1) / block;
    const std::int64_t columns = (product_.columns() + block - 1) / block;
    const std::int64_t tasks = numel(product_.batch) * rows * columns;
    const double cost = product_.multiply_adds() / static_cast<double>(std::max<std::int64_t>(tasks, 1)) / 16;
    base::parallel_for(tasks, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        multiply(bindings, task / (rows * columns), task / columns % rows * block, task % columns * block);
      }
    });
  }

 private:
  std::int64_t batch_offset(const Strides& strides, std::int64_t matrix) const {
    std::int64_t offset = 0;
    for (int axis = product_.batch.rank() - 1; axis >= 0; --axis) {
      offset += matrix % product_.batch[axis] * strides[axis];
      matrix /= product_.batch[axis];
    }
    return offset;
  }

  void multiply(const Bindings& bindings, std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const auto at = [&](const compile::Access& access, const Matrix& m, std::int64_t i, std::int64_t j) {
      return address_as<double>(access, bindings) + batch_offset(m.batch_strides, matrix) + i * m.rows.step[2] +
             j * m.columns.step[2];
    };
    const auto rows = static_cast<int>(std::min(block, product_.rows() - row));
    const auto columns = static_cast<int>(std::min(block, product_.columns() - column));
    cblas_dgemm(CblasRowMajor, a_order_.transposed, b_order_.transposed, rows, columns,
                static_cast<int>(product_.inner()), 1, at(a_, product_.a, row, 0), a_order_.leading,
                at(b_, product_.b, 0, column), b_order_.leading, 0, at(c_, product_.c, row, column), c_order_.leading);
  }

  Product product_;
  compile::Access a_, b_, c_;
  Order a_order_, b_order_, c_order_;
};

}  // namespace

Verdict judge_blas(const Primitive& primitive) {
  if (input_access(primitive, 0).dtype != DType::float64) return decline("OpenBLAS is used for float64 only");
  if (primitive.output.access.dtype != DType::float64) return decline("a mix of types");
  if (!primitive.epilogue.code.empty()) return decline("it takes no epilogue");
  const Product product = product_of(primitive);
  if (numel(product.batch) * product.rows() * product.columns() * product.inner() == 0) {
    return decline("there is nothing to compute");
  }
  // One call costs about a microsecond.
  const double each = product.multiply_adds() / static_cast<double>(numel(product.batch));
  if (each < 20000) return decline("the matrices are small");
  const auto c = order_of(product.c);
  if (!order_of(product.a) || !order_of(product.b) || !c || c->transposed != CblasNoTrans) {
    return decline("a matrix has gaps along both axes");
  }
  static const bool one_thread = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(one_thread);
  return accept([&primitive, product] { return std::make_unique<BlasProduct>(primitive, product); });
}

}  // namespace russet::cpu
