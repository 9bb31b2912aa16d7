// Factorisations and solvers: composites of the primitives that LAPACK computes.
#include <fmt/format.h>

#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/linalg.h>
#include <russet/functional/movement.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include <algorithm>
#include <limits>

#include "functional/linalg_detail.h"

namespace russet {

using functional::constant;
using functional::factored;
using functional::identity;
using functional::product;
using functional::require_matrices;
using functional::require_square;
using functional::singular_values;
using functional::solved_triangular;
using functional::transposed;
using ops::Op;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace functional {

std::pair<Tensor, Tensor> with_one_batch(const Tensor& a, const Tensor& b) {
  Shape first = a.sizes();
  Shape second = b.sizes();
  const Shape a_matrix{a.size(-2), a.size(-1)};
  const Shape b_matrix{b.size(-2), b.size(-1)};
  for (Shape* sizes : {&first, &second}) {
    sizes->pop_back();
    sizes->pop_back();
  }
  const Shape batch = broadcast(first, second);
  const auto expanded = [&](const Tensor& x, const Shape& matrix) {
    Shape sizes = batch;
    sizes.push_back(matrix[0]);
    sizes.push_back(matrix[1]);
    return x.sizes() == sizes ? x : x.expand(sizes);
  };
  return {expanded(a, a_matrix), expanded(b, b_matrix)};
}

void require_matrices(const char* function, const Tensor& a) {
  if (a.dim() < 2) {
    throw ShapeError(fmt::format("{}: takes matrices (at least 2 dimensions), not {}", function, to_string(a.sizes())));
  }
  if (a.dtype() != DType::float32 && a.dtype() != DType::float64) {
    throw TypeError(
        fmt::format("{}: takes float32 and float64, not {}. Cast with .to()", function, name_of(a.dtype())));
  }
}

void require_square(const char* function, const Tensor& a) {
  require_matrices(function, a);
  if (a.size(-1) == a.size(-2)) return;
  throw ShapeError(fmt::format("{}: takes square matrices, not {}", function, to_string(a.sizes())));
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor left = a;
  Tensor right = b;
  while (left.dim() < right.dim()) left = left.unsqueeze(0);
  while (right.dim() < left.dim()) right = right.unsqueeze(0);
  return autograd::apply(Op::matmul, {left, right});
}

Tensor identity(std::int64_t size, const Tensor& like) {
  return eye(size, {}, {.dtype = like.dtype(), .device = like.device()});
}

Tensor factored(Op op, const Tensor& a, const ops::Linalg& wanted) {
  graph::NodeInfo given;
  given.attributes = wanted;
  return autograd::apply(op, {a}, std::move(given));
}

Tensor solved_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const auto [left, right] = with_one_batch(a, b);
  graph::NodeInfo given;
  given.attributes = ops::Linalg{.upper = upper, .unit = unit};
  return autograd::apply(Op::solve_triangular, {left, right}, std::move(given));
}

Tensor singular_values(const Tensor& a, bool symmetric) {
  if (symmetric) return abs(linalg_eigvalsh(a));
  return factored(Op::svd, a, {.vectors = false}).squeeze(-2);
}

}  // namespace functional

namespace {

/// A as the symmetric matrix of which only its lower triangle was given. The primitives read the symmetric part, and so
/// give a symmetric gradient: that is A's, as in PyTorch.
Tensor mirrored(const Tensor& a) {
  const Tensor result = functional::outside_tape([&] { return tril(a) + transposed(tril(a, -1)); });
  return autograd::with_gradient("mirrored", {a}, result, {}, false, [](const Tensor& g, Saved) { return Tensors{g}; });
}

Tensor lower_triangle_of(const char* function, const Tensor& a, std::string_view uplo) {
  require_square(function, a);
  if (uplo != "L" && uplo != "l" && uplo != "U" && uplo != "u") {
    throw ValueError(fmt::format("{}: UPLO is \"L\" or \"U\", not \"{}\"", function, uplo));
  }
  return mirrored(uplo == "L" || uplo == "l" ? a : transposed(a));
}

/// The columns that complete orthonormal ones to a square matrix: the factor of [Q 1] has Q's columns, up to their
/// signs, and others behind them.
Tensor completion(const Tensor& q) {
  const std::int64_t m = q.size(-2);
  Shape sizes = q.sizes();
  sizes[sizes.rank() - 1] = m;
  const Tensor whole = factored(Op::qr, cat({q, identity(m, q).expand(sizes)}, -1));
  return whole.narrow(-2, 0, m).narrow(-1, q.size(-1), m - q.size(-1));
}

}  // namespace

Tensor linalg_cholesky(const Tensor& a, bool upper) {
  require_square("linalg_cholesky", a);
  const Tensor l = factored(Op::cholesky, mirrored(a));
  return upper ? functional::copied(transposed(l)) : l;
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  require_square("cholesky_solve", factor);
  require_matrices("cholesky_solve", b);
  const Tensor l = upper ? transposed(factor) : factor;
  return solved_triangular(transposed(l), solved_triangular(l, b, false), true);
}

QrResult linalg_qr(const Tensor& a, std::string_view mode) {
  require_matrices("linalg_qr", a);
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    throw ValueError(fmt::format("linalg_qr: mode is \"reduced\", \"complete\" or \"r\", not \"{}\"", mode));
  }
  const std::int64_t m = a.size(-2);
  const std::int64_t n = a.size(-1);
  const Tensor both = factored(Op::qr, a);
  const Tensor q = both.narrow(-2, 0, m);
  const Tensor r = transposed(both.narrow(-2, m, n));
  if (mode == "r") return {constant(0, a, {0}), r};
  if (mode == "reduced" || m <= n) return {q, r};
  Shape below = r.sizes();
  below[below.rank() - 2] = m - n;
  const Tensor whole = functional::outside_tape([&] { return cat({q, completion(q)}, -1); });
  const Tensor square =
      autograd::with_gradient("linalg_qr", {a}, whole, {}, false, [](const Tensor&, Saved) -> Tensors {
        throw AutogradError("linalg_qr: mode \"complete\" has no gradient for more rows than columns. Use \"reduced\"");
      });
  return {square, cat({r, constant(0, a, below)}, -2)};
}

SvdResult linalg_svd(const Tensor& a, bool full_matrices) {
  require_matrices("linalg_svd", a);
  const std::int64_t m = a.size(-2);
  const std::int64_t n = a.size(-1);
  const Tensor all = factored(Op::svd, a);
  Tensor u = all.narrow(-2, 0, m);
  const Tensor s = all.narrow(-2, m, 1).squeeze(-2);
  Tensor v = all.narrow(-2, m + 1, n);
  if (full_matrices && m > n) u = cat({u, completion(u.detach())}, -1);
  if (full_matrices && n > m) v = cat({v, completion(v.detach())}, -1);
  return {u, s, transposed(v)};
}

Tensor linalg_svdvals(const Tensor& a) {
  require_matrices("linalg_svdvals", a);
  return singular_values(a);
}

EighResult linalg_eigh(const Tensor& a, std::string_view uplo) {
  const Tensor all = factored(Op::eigh, lower_triangle_of("linalg_eigh", a, uplo));
  const std::int64_t n = a.size(-1);
  return {all.narrow(-2, n, 1).squeeze(-2), all.narrow(-2, 0, n)};
}

Tensor linalg_eigvalsh(const Tensor& a, std::string_view uplo) {
  return factored(Op::eigh, lower_triangle_of("linalg_eigvalsh", a, uplo), {.vectors = false}).squeeze(-2);
}

namespace {

/// X with A X = B by elimination; a singular A is an error.
Tensor eliminated(const Tensor& a, const Tensor& b) {
  const std::int64_t n = a.size(-1);
  const Tensor all = factored(Op::lu, a, {.invertible = true});
  const Tensor lu = all.narrow(-2, 0, n);
  const Tensor rows = functional::cast(transposed(all.narrow(-2, n, 1)), DType::int64);
  const auto [order, right] = functional::with_one_batch(rows, b);
  const Tensor permuted = gather(right, -2, order.expand(right.sizes()));
  return solved_triangular(lu, solved_triangular(lu, permuted, false, true), true);
}

/// The gradient of solve: B' = A^-T X', A' = -B' X^T (Giles, Collected matrix derivative results, 2.3.1).
Tensor solved(const Tensor& a, const Tensor& b) {
  const Tensor x = functional::outside_tape([&] { return eliminated(a, b); });
  return autograd::with_gradient("linalg_solve", {a, b}, x, {a}, true, [](const Tensor& g, Saved saved) {
    const Tensor right = solved(transposed(saved[0]), g);
    return Tensors{-product(right, transposed(saved[1])), right};
  });
}

/// Whether B holds vectors that belong to A's matrices.
bool has_vectors(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  if (a.dim() - 1 != b.dim()) return false;
  for (int axis = 0; axis < b.dim(); ++axis) {
    if (b.sizes()[axis] != a.sizes()[axis]) return false;
  }
  return true;
}

[[noreturn]] void throw_unfit(const char* function, const Tensor& a, const Tensor& b) {
  throw ShapeError(
      fmt::format("{}: the sizes do not fit: {} and {}", function, to_string(a.sizes()), to_string(b.sizes())));
}

}  // namespace

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  require_square("linalg_solve", a);
  if (b.dim() == 0) throw ShapeError("linalg_solve: B has no dimensions");
  if (has_vectors(a, b)) {
    if (!left) throw ShapeError("linalg_solve: vectors stand at the right of A only");
    return linalg_solve(a, b.unsqueeze(-1)).squeeze(-1);
  }
  if (!left) return transposed(linalg_solve(transposed(a), transposed(b)));
  if (a.size(-1) != b.size(-2)) throw_unfit("linalg_solve", a, b);
  return solved(a, b);
}

Tensor linalg_solve_triangular(const Tensor& a, const Tensor& b, const SolveTriangularOptions& options) {
  require_square("linalg_solve_triangular", a);
  require_matrices("linalg_solve_triangular", b);
  if (!options.left) {
    if (a.size(-1) != b.size(-1)) throw_unfit("linalg_solve_triangular", a, b);
    return transposed(solved_triangular(transposed(a), transposed(b), !options.upper, options.unitriangular));
  }
  if (a.size(-1) != b.size(-2)) throw_unfit("linalg_solve_triangular", a, b);
  return solved_triangular(a, b, options.upper, options.unitriangular);
}

Tensor inverse(const Tensor& a) {
  require_square("inverse", a);
  return solved(a, identity(a.size(-1), a).expand(a.sizes()));
}

}  // namespace russet
