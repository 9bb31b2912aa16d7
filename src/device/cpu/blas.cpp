#include "device/cpu/blas.h"

#ifdef __APPLE__
#include <Accelerate/Accelerate.h>
#include <dlfcn.h>
#else
#include <cblas.h>
#endif
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

/// Blocks of the result are cut by sizes alone, so that the bits do not depend on the number of threads. BLAS works on
/// one thread; ours share out the blocks.
constexpr std::int64_t largest_rows = 256;
constexpr std::int64_t largest_columns = 768;

/// An axis in equal blocks, but for the last.
struct Blocks {
  std::int64_t size, count;

  Blocks(std::int64_t extent, std::int64_t largest) {
    constexpr std::int64_t step = 16;  // of OpenBLAS's kernels
    const std::int64_t wanted = (extent + largest - 1) / largest;
    size = ((extent + wanted - 1) / wanted + step - 1) / step * step;
    count = (extent + size - 1) / size;
  }
};

void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double* a, int lda, const double* b,
              int ldb, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}
void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float* a, int lda, const float* b,
              int ldb, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}

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

template <class T>
class BlasProduct final : public compile::Kernel {
 public:
  BlasProduct(const Primitive& primitive, Product product)
      : product_(std::move(product)),
        a_(input_access(primitive, product_.a_input)),
        b_(input_access(primitive, product_.b_input)),
        c_(primitive.output.access),
        a_order_(*order_of(product_.a)),
        b_order_(*order_of(product_.b)),
        c_order_(*order_of(product_.c)),
        rows_(product_.rows(), largest_rows),
        columns_(product_.columns(), largest_columns) {
    use_calling_thread();  // OpenBLAS allocates in it, which must not happen when the kernel runs
  }

  std::string name() const override { return "blas"; }

  void run(const Bindings& bindings) const override {
    const std::int64_t blocks = rows_.count * columns_.count;
    const std::int64_t tasks = numel(product_.batch) * blocks;
    const double cost = product_.multiply_adds() / static_cast<double>(std::max<std::int64_t>(tasks, 1)) / 16;
    base::parallel_for(tasks, cost, [&](std::int64_t begin, std::int64_t end) {
      use_calling_thread();
      for (std::int64_t task = begin; task < end; ++task) {
        multiply_block(bindings, task / blocks, task / columns_.count % rows_.count * rows_.size,
                       task % columns_.count * columns_.size);
      }
    });
  }

 private:
  void multiply_block(const Bindings& bindings, std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const auto at = [&](const compile::Access& access, const Matrix& m, std::int64_t i, std::int64_t j) {
      return address_as<T>(access, bindings) + product_.batch_offset(m, matrix) + i * m.rows.step[2] +
             j * m.columns.step[2];
    };
    const auto rows = static_cast<int>(std::min(rows_.size, product_.rows() - row));
    const auto columns = static_cast<int>(std::min(columns_.size, product_.columns() - column));
    multiply(a_order_.transposed, b_order_.transposed, rows, columns, static_cast<int>(product_.inner()),
             at(a_, product_.a, row, 0), a_order_.leading, at(b_, product_.b, 0, column), b_order_.leading,
             at(c_, product_.c, row, column), c_order_.leading);
  }

  Product product_;
  compile::Access a_, b_, c_;
  Order a_order_, b_order_, c_order_;
  Blocks rows_, columns_;
};

}  // namespace

#ifdef __APPLE__
// Accelerate has a setting for each thread, since macOS 15: it is looked up, for an SDK of macOS 14 does not declare
// it.
void use_calling_thread() {
  static const auto set_threading = reinterpret_cast<int (*)(unsigned)>(dlsym(RTLD_DEFAULT, "BLASSetThreading"));
  constexpr unsigned single_threaded = 1;
  if (set_threading != nullptr) set_threading(single_threaded);
}
#else
// OpenBLAS has one setting for all threads.
void use_calling_thread() {
  static const bool set = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(set);
}
#endif

Verdict judge_blas(const Primitive& primitive) {
  const DType type = input_access(primitive, 0).dtype;
  if (type != DType::float64 && type != DType::float32) return decline("BLAS has float64 and float32 only");
  if (input_access(primitive, 1).dtype != type || primitive.output.access.dtype != type)
    return decline("a mix of types");
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
  return accept([&primitive, product, type]() -> compile::KernelPtr {
    if (type == DType::float32) return std::make_unique<BlasProduct<float>>(primitive, product);
    return std::make_unique<BlasProduct<double>>(primitive, product);
  });
}

// Measured on a core with AVX-512, GFLOP/s of oneDNN 2.6 and OpenBLAS 0.3.21, the second factor row-major: 1024 columns
// 168 and 159, 2304 columns 75 and 157, 3072 columns 49 and 147; transposed they are equal.
Verdict judge_faster_blas(const Primitive& primitive) {
  constexpr std::int64_t wide = 1536;  // columns
  if (input_access(primitive, 0).dtype != DType::float32) return decline("oneDNN has the type, or BLAS lacks it");
  const Matrix b = product_of(primitive).b;
  if (b.columns.step[2] != 1 || b.columns.count() < wide) return decline("oneDNN is as fast");
  return judge_blas(primitive);
}

}  // namespace russet::cpu
