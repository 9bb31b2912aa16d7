// Factorisations by LAPACK: each matrix is copied to column-major workspace, factored there, and its results are copied
// to where the step wants them, one below the other.
#include "device/cpu/linalg.h"

#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "device/cpu/blas.h"
#include "device/cpu/lapack.h"
#include "device/cpu/operand.h"
#include "device/cpu/workers.h"
#include "ops/cost.h"
#include "ops/failures.h"
#include "ops/linalg.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;

/// The matrices of an operand: its last two axes, at each index of the others.
struct Matrices {
  int rows, columns;
  std::int64_t row_step, column_step;
  std::vector<std::int64_t> starts;

  explicit Matrices(const Operand& operand) {
    Shape batch = operand.sizes;
    Strides steps = operand.access.strides;
    column_step = steps.back();
    columns = static_cast<int>(batch.back());
    batch.pop_back();
    steps.pop_back();
    row_step = steps.back();
    rows = static_cast<int>(batch.back());
    batch.pop_back();
    steps.pop_back();
    walk(
        batch, [&](std::int64_t at) { starts.push_back(at); }, steps);
  }
  std::int64_t elements() const { return static_cast<std::int64_t>(rows) * columns; }
};

/// One matrix of an operand in memory.
template <class T>
struct Place {
  T* first;
  const Matrices& layout;

  T& operator()(int row, int column) const { return first[row * layout.row_step + column * layout.column_step]; }
};

/// To a column-major matrix without gaps.
template <class T>
void copy_in(const Place<const T>& from, T* to) {
  for (int column = 0; column < from.layout.columns; ++column) {
    for (int row = 0; row < from.layout.rows; ++row) *to++ = from(row, column);
  }
}

/// (A + A^T) / 2.
template <class T>
void copy_symmetric(const Place<const T>& from, T* to) {
  const int size = from.layout.rows;
  for (int column = 0; column < size; ++column) {
    for (int row = 0; row < size; ++row) *to++ = (from(row, column) + from(column, row)) / 2;
  }
}

/// A column-major matrix of as many columns as the result to the rows from `first_row` on.
template <class T>
void copy_out(const T* from, int rows, const Place<T>& to, int first_row) {
  for (int column = 0; column < to.layout.columns; ++column) {
    for (int row = 0; row < rows; ++row) to(first_row + row, column) = *from++;
  }
}

/// What a factorisation takes besides its matrices, in numbers and integers.
struct Sizes {
  std::int64_t numbers = 0;
  std::int64_t integers = 0;
  int work = 0;  // of the numbers, LAPACK's own workspace
  int integer_work = 0;
};

/// LAPACK says in a float how large its workspace should be; a float's last bits may be missing.
template <class T>
int asked_size(T answer) {
  return static_cast<int>(static_cast<double>(answer) * (1 + std::numeric_limits<T>::epsilon())) + 1;
}

template <class T>
Sizes sizes_of(Op op, bool vectors, int m, int n, int right) {
  const int k = std::min(m, n);
  const std::int64_t elements = std::max<std::int64_t>(1, static_cast<std::int64_t>(m) * n);
  Sizes sizes;
  sizes.numbers = elements;
  T asked = 0;
  T other = 0;
  int integers = 0;
  switch (op) {
    case Op::lu: sizes.integers = 2 * std::int64_t{n}; break;
    case Op::qr:
      lapack::geqrf(m, n, &asked, &asked, &asked, -1);
      lapack::orgqr(m, k, &other, &other, &other, -1);
      sizes.work = std::max(asked_size(asked), asked_size(other));
      sizes.numbers += k;
      break;
    case Op::eigh:
      lapack::syevd(vectors, n, &asked, &asked, &asked, -1, &integers, -1);
      sizes.work = asked_size(asked);
      sizes.integer_work = std::max(1, integers);
      sizes.numbers += n;
      break;
    case Op::svd:
      lapack::gesdd(vectors, m, n, &asked, &asked, &asked, &asked, &asked, -1, &integers);
      sizes.work = asked_size(asked);
      sizes.integer_work = 8 * k;
      sizes.numbers += k + static_cast<std::int64_t>(k) * (m + n);
      break;
    case Op::solve_triangular: sizes.numbers += static_cast<std::int64_t>(n) * right; break;
    default: break;
  }
  sizes.numbers += sizes.work;
  sizes.integers += sizes.integer_work;
  return sizes;
}

template <class T>
class Factorisation final : public compile::Kernel {
 public:
  explicit Factorisation(const Primitive& primitive)
      : primitive_(primitive),
        input_(primitive.inputs[0]),
        right_(primitive.inputs.back()),
        output_(primitive.output),
        wanted_(attribute<ops::Linalg>(primitive)),
        workers_(count()) {
    // LAPACK takes no leading dimension of 0; nothing is done for empty matrices.
    if (input_.elements() > 0) {
      sizes_ = sizes_of<T>(primitive.op, wanted_.vectors, input_.rows, input_.columns, right_.columns);
    }
    use_calling_thread();  // OpenBLAS allocates in it, which must not happen when the kernel runs
  }

  std::size_t scratch_bytes() const override { return static_cast<std::size_t>(workers_.count()) * worker_bytes(); }
  std::string name() const override { return "lapack"; }

  void run(const Bindings& bindings) const override {
    if (numel(primitive_.output.sizes) == 0) return;
    std::vector<Shape> shapes;
    for (const Operand& input : primitive_.inputs) shapes.push_back(input.sizes);
    const double operations = ops::operations(primitive_.op, primitive_.attributes, shapes, primitive_.output.sizes);
    workers_.each(count(), operations / 4, [&](std::int64_t matrix, int worker) {
      use_calling_thread();
      auto* const numbers = reinterpret_cast<T*>(bindings.scratch + static_cast<std::size_t>(worker) * worker_bytes());
      factor(bindings, matrix, numbers, reinterpret_cast<int*>(numbers + sizes_.numbers));
    });
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(output_.starts.size()); }
  std::size_t worker_bytes() const {
    constexpr std::size_t line = 64;
    const std::size_t bytes =
        static_cast<std::size_t>(sizes_.numbers) * sizeof(T) + static_cast<std::size_t>(sizes_.integers) * sizeof(int);
    return (bytes + line - 1) / line * line;
  }

  void factor(const Bindings& bindings, std::int64_t matrix, T* numbers, int* integers) const {
    const auto at = static_cast<std::size_t>(matrix);
    const Place<const T> from{address_as<const T>(input_access(primitive_, 0), bindings) + input_.starts[at], input_};
    const Place<T> to{address_as<T>(primitive_.output.access, bindings) + output_.starts[at], output_};
    switch (primitive_.op) {
      case Op::cholesky: return cholesky(from, to, matrix, numbers);
      case Op::lu: return lu(from, to, matrix, numbers, integers);
      case Op::qr: return qr(from, to, numbers);
      case Op::eigh: return eigh(from, to, matrix, numbers, integers);
      case Op::svd: return svd(from, to, matrix, numbers, integers);
      default: break;
    }
    const Place<const T> right{address_as<const T>(primitive_.inputs[1].access, bindings) + right_.starts[at], right_};
    T* const b = numbers + input_.elements();
    copy_in(from, numbers);
    copy_in(right, b);
    lapack::trsm(wanted_.upper, wanted_.unit, input_.rows, right_.columns, numbers, b);
    copy_out(b, input_.rows, to, 0);
  }

  void cholesky(const Place<const T>& from, const Place<T>& to, std::int64_t matrix, T* a) const {
    const int n = input_.rows;
    copy_symmetric(from, a);
    if (const int order = lapack::potrf(n, a); order != 0) ops::throw_not_positive_definite(matrix, count(), order);
    for (int column = 0; column < n; ++column) {
      T* const elements = a + std::int64_t{column} * n;
      if (!(elements[column] > 0)) ops::throw_not_positive_definite(matrix, count(), column + 1);  // NaN
      std::fill_n(elements, column, T{0});
    }
    copy_out(a, n, to, 0);
  }

  void lu(const Place<const T>& from, const Place<T>& to, std::int64_t matrix, T* a, int* pivots) const {
    const int n = input_.rows;
    copy_in(from, a);
    const int zero = lapack::getrf(n, a, pivots);
    if (zero != 0 && wanted_.invertible) ops::throw_singular("lu", matrix, count(), zero);
    copy_out(a, n, to, 0);
    // LAPACK says which row was exchanged with row i in step i.
    int* const order = pivots + n;
    std::iota(order, order + n, 0);
    for (int i = 0; i < n; ++i) std::swap(order[i], order[pivots[i] - 1]);
    for (int i = 0; i < n; ++i) to(n, i) = static_cast<T>(order[i]);
  }

  void qr(const Place<const T>& from, const Place<T>& to, T* a) const {
    const int m = input_.rows;
    const int n = input_.columns;
    const int k = output_.columns;
    T* const tau = a + input_.elements();
    T* const work = tau + k;
    copy_in(from, a);
    lapack::geqrf(m, n, a, tau, work, sizes_.work);
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < k; ++row) {
        to(m + column, row) = row <= column ? a[std::int64_t{column} * m + row] : T{0};
      }
    }
    lapack::orgqr(m, k, a, tau, work, sizes_.work);
    copy_out(a, m, to, 0);
  }

  void eigh(const Place<const T>& from, const Place<T>& to, std::int64_t matrix, T* a, int* integers) const {
    const int n = input_.rows;
    T* const values = a + input_.elements();
    copy_symmetric(from, a);
    const bool failed =
        lapack::syevd(wanted_.vectors, n, a, values, values + n, sizes_.work, integers, sizes_.integer_work) != 0;
    if (failed || !finite(values, n)) ops::throw_no_convergence("eigh", matrix, count());
    if (wanted_.vectors) {
      for (int column = 0; column < n; ++column) {
        T* const vector = a + std::int64_t{column} * n;
        if (ops::points_backward(std::span<const T>(vector, static_cast<std::size_t>(n)))) negate(vector, n);
      }
      copy_out(a, n, to, 0);
    }
    for (int i = 0; i < n; ++i) to(wanted_.vectors ? n : 0, i) = values[i];
  }

  void svd(const Place<const T>& from, const Place<T>& to, std::int64_t matrix, T* a, int* integers) const {
    const int m = input_.rows;
    const int n = input_.columns;
    const int k = output_.columns;
    T* const values = a + input_.elements();
    T* const left = values + k;
    T* const right = left + std::int64_t{m} * k;
    copy_in(from, a);
    const bool failed = lapack::gesdd(wanted_.vectors, m, n, a, values, left, right, right + std::int64_t{k} * n,
                                      sizes_.work, integers) != 0;
    if (failed || !finite(values, k)) ops::throw_no_convergence("svd", matrix, count());
    if (!wanted_.vectors) return copy_out_row(values, to, 0);
    for (int column = 0; column < k; ++column) {
      T* const vector = left + std::int64_t{column} * m;
      const bool flips = ops::points_backward(std::span<const T>(vector, static_cast<std::size_t>(m)));
      if (flips) negate(vector, m);
      for (int row = 0; row < n; ++row) {
        const T element = right[std::int64_t{row} * k + column];
        to(m + 1 + row, column) = flips ? -element : element;
      }
    }
    copy_out(left, m, to, 0);
    copy_out_row(values, to, m);
  }

  static void negate(T* values, int count) {
    for (int i = 0; i < count; ++i) values[i] = -values[i];
  }
  static bool finite(const T* values, int count) {
    return std::all_of(values, values + count, [](T value) { return std::isfinite(value); });
  }
  static void copy_out_row(const T* values, const Place<T>& to, int row) {
    for (int i = 0; i < to.layout.columns; ++i) to(row, i) = values[i];
  }

  Primitive primitive_;
  Matrices input_;
  Matrices right_;
  Matrices output_;
  ops::Linalg wanted_;
  Workers workers_;
  Sizes sizes_;
};

}  // namespace

Verdict judge_lapack(const Primitive& primitive) {
  const Shape& sizes = primitive.inputs[0].sizes;
  constexpr std::int64_t most = 1 << 15;  // LAPACK counts elements of workspace in 32 bits
  if (std::max(sizes.back(), sizes[sizes.rank() - 2]) > most) {
    return decline(fmt::format("matrices of more than {} rows or columns", most));
  }
  return accept([&primitive]() -> KernelPtr {
    if (primitive.output.access.dtype == DType::float64) return std::make_unique<Factorisation<double>>(primitive);
    return std::make_unique<Factorisation<float>>(primitive);
  });
}

}  // namespace russet::cpu
