// Factorisations by their textbook algorithms.
#include <algorithm>
#include <numeric>
#include <span>

#include "device/reference/kernels.h"
#include "ops/failures.h"
#include "ops/linalg.h"

namespace russet::reference {
namespace {

using ops::Op;

/// Row-major.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> values;

  Matrix(std::int64_t rows, std::int64_t columns)
      : rows(rows), columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  double operator()(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  }
  return result;
}

Matrix symmetric_part(const Matrix& a) {
  Matrix result = a;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.rows; ++j) result(i, j) = (a(i, j) + a(j, i)) / 2;
  }
  return result;
}

Matrix identity(std::int64_t size) {
  Matrix result(size, size);
  for (std::int64_t i = 0; i < size; ++i) result(i, i) = 1;
  return result;
}

/// The rows of both, one below the other.
void append(Matrix& above, const Matrix& below) {
  above.values.insert(above.values.end(), below.values.begin(), below.values.end());
  above.rows += below.rows;
}

/// Which of how many matrices is factored, for messages.
struct Turn {
  std::int64_t matrix, matrices;
};

/// Column by column (Golub and Van Loan, Matrix Computations, 4.2).
Matrix cholesky(const Matrix& given, const Turn& turn) {
  const Matrix a = symmetric_part(given);
  Matrix l(a.rows, a.rows);
  for (std::int64_t j = 0; j < a.rows; ++j) {
    double pivot = a(j, j);
    for (std::int64_t k = 0; k < j; ++k) pivot -= l(j, k) * l(j, k);
    if (!(pivot > 0)) ops::throw_not_positive_definite(turn.matrix, turn.matrices, j + 1);
    l(j, j) = std::sqrt(pivot);
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      double rest = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
      l(i, j) = rest / l(j, j);
    }
  }
  return l;
}

/// Gauss's elimination; the largest element of a column is its pivot.
Matrix lu(Matrix a, bool invertible, const Turn& turn) {
  const std::int64_t n = a.rows;
  Matrix order(1, n);
  std::iota(order.values.begin(), order.values.end(), 0.0);
  for (std::int64_t step = 0; step < n; ++step) {
    std::int64_t pivot = step;
    for (std::int64_t i = step + 1; i < n; ++i) {
      if (std::abs(a(i, step)) > std::abs(a(pivot, step))) pivot = i;
    }
    if (a(pivot, step) == 0) {
      if (invertible) ops::throw_singular("lu", turn.matrix, turn.matrices, step + 1);
      continue;
    }
    for (std::int64_t j = 0; j < n; ++j) std::swap(a(step, j), a(pivot, j));
    std::swap(order(0, step), order(0, pivot));
    for (std::int64_t i = step + 1; i < n; ++i) {
      a(i, step) /= a(step, step);
      for (std::int64_t j = step + 1; j < n; ++j) a(i, j) -= a(i, step) * a(step, j);
    }
  }
  append(a, order);
  return a;
}

/// Householder's reflections with LAPACK's signs: a column's element on the diagonal changes its sign.
Matrix qr(Matrix a) {
  const std::int64_t m = a.rows;
  const std::int64_t k = std::min(m, a.columns);
  Matrix q = identity(m);
  for (std::int64_t step = 0; step < k; ++step) {
    double below = 0;
    for (std::int64_t i = step + 1; i < m; ++i) below += a(i, step) * a(i, step);
    if (below == 0) continue;
    const double head = a(step, step);
    const double length = std::sqrt(head * head + below);
    std::vector<double> v(static_cast<std::size_t>(m));
    for (std::int64_t i = step; i < m; ++i) v[static_cast<std::size_t>(i)] = a(i, step);
    v[static_cast<std::size_t>(step)] += head >= 0 ? length : -length;
    const double square = std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
    for (std::int64_t j = 0; j < a.columns; ++j) {
      double along = 0;
      for (std::int64_t i = step; i < m; ++i) along += v[static_cast<std::size_t>(i)] * a(i, j);
      for (std::int64_t i = step; i < m; ++i) a(i, j) -= 2 * along / square * v[static_cast<std::size_t>(i)];
    }
    for (std::int64_t row = 0; row < m; ++row) {
      double along = 0;
      for (std::int64_t i = step; i < m; ++i) along += v[static_cast<std::size_t>(i)] * q(row, i);
      for (std::int64_t i = step; i < m; ++i) q(row, i) -= 2 * along / square * v[static_cast<std::size_t>(i)];
    }
  }
  Matrix result(m + a.columns, k);
  for (std::int64_t j = 0; j < k; ++j) {
    for (std::int64_t i = 0; i < m; ++i) result(i, j) = q(i, j);
    for (std::int64_t i = j; i < a.columns; ++i) result(m + i, j) = a(j, i);
  }
  return result;
}

constexpr int most_sweeps = 60;

/// Rotates columns p and q of a matrix.
void rotate(Matrix& a, std::int64_t p, std::int64_t q, double cosine, double sine) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double x = a(i, p);
    const double y = a(i, q);
    a(i, p) = cosine * x - sine * y;
    a(i, q) = sine * x + cosine * y;
  }
}

/// The tangent of the angle that makes two columns orthogonal: the smaller root (Golub and Van Loan, 8.5.2).
double tangent(double tau) { return (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau)); }

/// Jacobi's rotations of the columns of `a` until they are orthogonal; `v` turns with them (Hestenes, 1958). Whether
/// they became so.
bool orthogonalise(Matrix& a, Matrix& v) {
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool done = true;
    for (std::int64_t p = 0; p < a.columns; ++p) {
      for (std::int64_t q = p + 1; q < a.columns; ++q) {
        double first = 0, second = 0, both = 0;
        for (std::int64_t i = 0; i < a.rows; ++i) {
          first += a(i, p) * a(i, p);
          second += a(i, q) * a(i, q);
          both += a(i, p) * a(i, q);
        }
        if (!std::isfinite(first + second)) return false;
        if (std::abs(both) <= 1e-16 * std::sqrt(first * second) || both == 0) continue;
        done = false;
        const double t = tangent((second - first) / (2 * both));
        const double cosine = 1 / std::sqrt(1 + t * t);
        rotate(a, p, q, cosine, cosine * t);
        rotate(v, p, q, cosine, cosine * t);
      }
    }
    if (done) return true;
  }
  return true;  // what is left is rounding
}

std::vector<double> column(const Matrix& a, std::int64_t j) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.rows; ++i) values.push_back(a(i, j));
  return values;
}

/// Columns in the order of their values; each with the sign that ops::points_backward asks for. `other` turns with it.
void arrange(Matrix& vectors, Matrix* other, std::vector<double>& values, bool descending) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const double first = values[static_cast<std::size_t>(a)];
    const double second = values[static_cast<std::size_t>(b)];
    return descending ? first > second : first < second;
  });
  const Matrix old = vectors;
  const Matrix old_other = other ? *other : Matrix(0, vectors.columns);
  const std::vector<double> old_values = values;
  for (std::int64_t j = 0; j < vectors.columns; ++j) {
    const std::int64_t from = order[static_cast<std::size_t>(j)];
    const std::vector<double> vector = column(old, from);
    const double sign = ops::points_backward(std::span<const double>(vector)) ? -1 : 1;
    for (std::int64_t i = 0; i < vectors.rows; ++i) vectors(i, j) = sign * old(i, from);
    for (std::int64_t i = 0; i < old_other.rows; ++i) (*other)(i, j) = sign * old_other(i, from);
    values[static_cast<std::size_t>(j)] = old_values[static_cast<std::size_t>(from)];
  }
}

Matrix as_row(const std::vector<double>& values) {
  Matrix row(1, static_cast<std::int64_t>(values.size()));
  row.values = values;
  return row;
}

/// Jacobi's rotations from both sides (Golub and Van Loan, 8.5).
Matrix eigh(const Matrix& given, bool with_vectors, const Turn& turn) {
  Matrix a = symmetric_part(given);
  const std::int64_t n = a.rows;
  Matrix v = identity(n);
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool done = true;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        if (!std::isfinite(a(p, q))) ops::throw_no_convergence("eigh", turn.matrix, turn.matrices);
        if (std::abs(a(p, q)) <= 1e-18 * std::sqrt(std::abs(a(p, p) * a(q, q))) || std::abs(a(p, q)) < 1e-290) continue;
        done = false;
        const double t = tangent((a(q, q) - a(p, p)) / (2 * a(p, q)));
        const double cosine = 1 / std::sqrt(1 + t * t);
        rotate(a, p, q, cosine, cosine * t);
        a = transposed(a);
        rotate(a, p, q, cosine, cosine * t);
        rotate(v, p, q, cosine, cosine * t);
      }
    }
    if (done) break;
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(a(i, i));
    if (!std::isfinite(a(i, i))) ops::throw_no_convergence("eigh", turn.matrix, turn.matrices);
  }
  arrange(v, nullptr, values, false);
  if (!with_vectors) return as_row(values);
  append(v, as_row(values));
  return v;
}

/// Of [m, n] with n <= m, its columns made orthogonal: their lengths are the singular values.
void decompose_tall(Matrix& u, std::vector<double>& values, Matrix& v, const Turn& turn) {
  v = identity(u.columns);
  if (!orthogonalise(u, v)) ops::throw_no_convergence("svd", turn.matrix, turn.matrices);
  for (std::int64_t j = 0; j < u.columns; ++j) {
    const std::vector<double> vector = column(u, j);
    const double length = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
    if (!std::isfinite(length)) ops::throw_no_convergence("svd", turn.matrix, turn.matrices);
    values.push_back(length);
    for (std::int64_t i = 0; i < u.rows && length > 0; ++i) u(i, j) /= length;
  }
}

Matrix svd(const Matrix& a, bool with_vectors, const Turn& turn) {
  const bool wide = a.columns > a.rows;
  Matrix u = wide ? transposed(a) : a;
  Matrix v(0, 0);
  std::vector<double> values;
  decompose_tall(u, values, v, turn);
  if (wide) std::swap(u, v);
  arrange(u, &v, values, true);
  if (!with_vectors) return as_row(values);
  append(u, as_row(values));
  append(u, v);
  return u;
}

Matrix solve_triangular(const Matrix& a, Matrix x, const ops::Linalg& wanted) {
  const std::int64_t n = a.rows;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = wanted.upper ? n - 1 - step : step;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      double rest = x(i, j);
      const std::int64_t first = wanted.upper ? i + 1 : 0;
      const std::int64_t last = wanted.upper ? n : i;
      for (std::int64_t k = first; k < last; ++k) rest -= a(i, k) * x(k, j);
      x(i, j) = wanted.unit ? rest : rest / a(i, i);
    }
  }
  return x;
}

Matrix part(const Array<double>& all, std::int64_t matrix) {
  const int rank = all.shape.rank();
  Matrix result(all.shape[rank - 2], all.shape[rank - 1]);
  const auto size = static_cast<std::ptrdiff_t>(result.values.size());
  std::copy_n(all.values.begin() + matrix * size, size, result.values.begin());
  return result;
}

Matrix factored(const PrimitiveRun& primitive, const Matrix& a, const Array<double>* right, const Turn& turn) {
  const auto& wanted = primitive.attribute<ops::Linalg>();
  switch (primitive.op()) {
    case Op::cholesky: return cholesky(a, turn);
    case Op::lu: return lu(a, wanted.invertible, turn);
    case Op::qr: return qr(a);
    case Op::eigh: return eigh(a, wanted.vectors, turn);
    case Op::svd: return svd(a, wanted.vectors, turn);
    default: return solve_triangular(a, part(*right, turn.matrix), wanted);
  }
}

}  // namespace

void run_linalg(const PrimitiveRun& primitive) {
  Array<double> result(primitive.output_shape());
  if (result.values.empty()) return;
  const Array<double> a = primitive.input<double>(0);
  const bool solves = primitive.op() == Op::solve_triangular;
  const Array<double> right = solves ? primitive.input<double>(1) : Array<double>(Shape{});
  const int rank = result.shape.rank();
  const std::int64_t size = result.shape[rank - 2] * result.shape[rank - 1];
  const std::int64_t matrices = numel(result.shape) / size;
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
    const Matrix made = factored(primitive, part(a, matrix), solves ? &right : nullptr, {matrix, matrices});
    std::copy(made.values.begin(), made.values.end(), result.values.begin() + matrix * size);
  }
  primitive.output(result);
}

}  // namespace russet::reference
