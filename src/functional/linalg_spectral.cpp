// What follows from factorisations: pseudo-inverses, least squares, determinants, ranks, exponentials and powers.
#include <fmt/format.h>

#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/linalg.h>
#include <russet/functional/matmul.h>
#include <russet/functional/movement.h>
#include <russet/functional/reduction.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "functional/linalg_detail.h"

namespace russet {

using functional::cast;
using functional::constant;
using functional::factored;
using functional::identity;
using functional::product;
using functional::require_matrices;
using functional::require_square;
using functional::solved_triangular;
using functional::transposed;
using ops::Op;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

/// From which size on singular values [..., k] count: [..., 1].
Tensor least_size(const Tensor& a, const Tensor& values, const RankOptions& options) {
  const double atol = options.atol.value_or(0);
  const double usual = static_cast<double>(std::max(a.size(-1), a.size(-2))) * epsilon_of(a.dtype());
  const double rtol = options.rtol.value_or(atol > 0 ? 0 : usual);
  return maximum(functional::number(atol, values.dtype(), values.device()),
                 amax(values, -1, true) * functional::number(rtol, values.dtype(), values.device()));
}

/// The pseudo-inverse outside of the tape.
Tensor computed_pinv(const Tensor& a, const RankOptions& options) {
  Tensor left, values, right;
  if (options.hermitian) {
    const EighResult e = linalg_eigh(a);
    left = right = e.eigenvectors;
    values = e.eigenvalues;
  } else {
    const SvdResult s = linalg_svd(a, false);
    left = s.u;
    right = transposed(s.vh);
    values = s.s;
  }
  const Tensor sizes = abs(values);
  const Tensor counts = gt(sizes, least_size(a, sizes, options));
  const Tensor inverted =
      where(counts, constant(1, values) / where(counts, values, constant(1, values)), constant(0, values));
  return product(right * inverted.unsqueeze(-2), transposed(left));
}

/// Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
/// separate (1973), equation 4.12; of two ways to write it the one with the smaller products.
Tensor pinv_gradient(const Tensor& g, const Tensor& a, const Tensor& p) {
  const Tensor gt = transposed(g);
  const Tensor pt = transposed(p);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = product(gt, p);
    const Tensor kpt = product(k, pt);
    return kpt - transposed(product(p, k)) - product(product(a, p), kpt) + product(product(pt, p), gt - product(k, a));
  }
  const Tensor k = product(p, gt);
  const Tensor ptk = product(pt, k);
  return ptk - transposed(product(k, p)) + product(product(gt - product(a, k), p), pt) - product(product(ptk, p), a);
}

}  // namespace

Tensor linalg_pinv(const Tensor& a, const RankOptions& options) {
  require_matrices("linalg_pinv", a);
  if (options.hermitian) require_square("linalg_pinv", a);
  if (a.numel() == 0) return functional::copied(transposed(a));
  const Tensor result = functional::outside_tape([&] { return computed_pinv(a, options); });
  return autograd::with_gradient("linalg_pinv", {a}, result, {a}, true, [](const Tensor& g, Saved saved) {
    return Tensors{pinv_gradient(g, saved[0], saved[1])};
  });
}

Tensor linalg_matrix_rank(const Tensor& a, const RankOptions& options) {
  require_matrices("linalg_matrix_rank", a);
  const NoGrad guard;
  const Tensor values = functional::singular_values(a, options.hermitian);
  if (values.size(-1) == 0) return sum(gt(values, constant(0, values)), -1);
  return sum(gt(values, least_size(a, values, options)), -1);
}

namespace {

Tensor least_squares_by_qr(const Tensor& a, const Tensor& b) {
  if (a.size(-2) < a.size(-1)) {  // the shortest solution of A X = B: A^T = Q R, X = Q R^-T B
    const QrResult f = linalg_qr(transposed(a));
    return product(f.q, solved_triangular(transposed(f.r), b, false));
  }
  const QrResult f = linalg_qr(a);
  return solved_triangular(f.r, product(transposed(f.q), b), true);
}

}  // namespace

LstsqResult linalg_lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                         const LinalgLstsqOptions& options) {
  require_matrices("linalg_lstsq", a);
  constexpr std::array drivers{"gels", "gelsy", "gelsd", "gelss"};
  if (std::find(drivers.begin(), drivers.end(), options.driver) == drivers.end()) {
    throw ValueError(
        fmt::format("linalg_lstsq: driver is \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", not \"{}\"", options.driver));
  }
  const bool vectors = b.dim() == a.dim() - 1;
  if (vectors) {
    LstsqResult result = linalg_lstsq(a, b.unsqueeze(-1), rcond, options);
    result.solution = result.solution.squeeze(-1);
    return result;
  }
  require_matrices("linalg_lstsq", b);
  if (a.size(-2) != b.size(-2)) {
    throw ShapeError(fmt::format("linalg_lstsq: A {} and B {} have different numbers of rows", to_string(a.sizes()),
                                 to_string(b.sizes())));
  }
  const bool full_rank = options.driver == "gels";
  const bool with_values = options.driver == "gelsd" || options.driver == "gelss";
  const RankOptions tolerance{.rtol = rcond};
  const Tensor none = constant(0, a, {0});
  LstsqResult result{none, none, constant(0, DType::int64, a.device(), {0}), none};
  result.solution = full_rank ? least_squares_by_qr(a, b) : product(linalg_pinv(a, tolerance), b);
  if (options.driver != "gelsy" && a.size(-2) > a.size(-1)) {
    const Tensor distance = product(a, result.solution) - b;
    result.residuals = sum(distance * distance, -2);
  }
  if (!full_rank) result.rank = linalg_matrix_rank(a, tolerance);
  if (with_values) result.singular_values = functional::singular_values(a.detach());
  return result;
}

namespace {

/// U's diagonal, and the sign of the permutation: -1 for an odd number of pairs in the wrong order.
struct Elimination {
  Tensor pivots;
  Tensor sign;

  explicit Elimination(const Tensor& a) {
    const std::int64_t n = a.size(-1);
    const Tensor all = factored(Op::lu, a);
    pivots = diagonal(all.narrow(-2, 0, n), 0, -2, -1);
    const NoGrad guard;
    const Tensor order = all.detach().narrow(-2, n, 1);
    const Tensor wrong = triu(cast(lt(order, transposed(order)), DType::int64), 1);
    const Tensor odd = cast(remainder(sum(wrong, {-2, -1}), Scalar(2)), a.dtype());
    sign = constant(1, odd) - odd * constant(2, odd);
  }
};

}  // namespace

Tensor det(const Tensor& a) {
  require_square("det", a);
  const Elimination e(a);
  return prod(e.pivots, -1) * e.sign;
}

SlogdetResult slogdet(const Tensor& a) {
  require_square("slogdet", a);
  const Elimination e(a);
  return {prod(sign(e.pivots.detach()), -1) * e.sign, sum(log(abs(e.pivots)), -1)};
}

Tensor logdet(const Tensor& a) {
  require_square("logdet", a);
  const SlogdetResult result = slogdet(a);
  return where(lt(result.sign, constant(0, result.sign)),
               constant(std::numeric_limits<double>::quiet_NaN(), result.sign), result.logabsdet);
}

namespace {

/// Taylor's series up to the 16th power, for matrices of a norm of at most 1/2, where the rest is below 1e-19: four
/// terms at a time (Paterson and Stockmeyer, 1973).
Tensor exponential_near_zero(const Tensor& a) {
  const Tensor one = identity(a.size(-1), a);
  const Tensor square = product(a, a);
  const Tensor cube = product(square, a);
  const Tensor fourth = product(square, square);
  std::array<double, 17> inverse_factorials{1};
  for (std::size_t i = 1; i < inverse_factorials.size(); ++i) {
    inverse_factorials[i] = inverse_factorials[i - 1] / static_cast<double>(i);
  }
  const auto term = [&](const Tensor& power, std::size_t i) { return power * constant(inverse_factorials[i], a); };
  Tensor result = term(one, 16).expand(a.sizes());
  for (std::size_t first = 16; first > 0;) {
    first -= 4;
    const Tensor four = term(one, first) + term(a, first + 1) + term(square, first + 2) + term(cube, first + 3);
    result = product(fourth, result) + four;
  }
  return result;
}

/// exp(A) = exp(A / 2^s)^(2^s) (Moler and Van Loan, Nineteen dubious ways to compute the exponential of a matrix).
Tensor computed_exponential(const Tensor& a) {
  if (a.numel() == 0) return functional::copied(a);
  const double size = amax(sum(abs(a.detach()), -1)).item();
  const int doublings = std::isfinite(size) && size > 0.5 ? static_cast<int>(std::ceil(std::log2(size * 2))) : 0;
  Tensor result = exponential_near_zero(a * functional::number(std::ldexp(1.0, -doublings), a.dtype(), a.device()));
  for (int i = 0; i < doublings; ++i) result = product(result, result);
  return result;
}

}  // namespace

Tensor matrix_exp(const Tensor& a) {
  require_square("matrix_exp", a);
  const Tensor result = functional::outside_tape([&] { return computed_exponential(a); });
  // The upper right block of exp([[A^T, G], [0, A^T]]) (Mathias, A chain rule for matrix functions, 1996).
  return autograd::with_gradient("matrix_exp", {a}, result, {a}, false, [](const Tensor& g, Saved saved) {
    const Tensor at = transposed(saved[0]);
    const std::int64_t n = at.size(-1);
    const Tensor blocks = cat({cat({at, g}, -1), cat({constant(0, at, at.sizes()), at}, -1)}, -2);
    return Tensors{matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)};
  });
}

Tensor matrix_power(const Tensor& a, std::int64_t n) {
  require_square("matrix_power", a);
  if (n == 0) return functional::copied(identity(a.size(-1), a).expand(a.sizes()));
  Tensor power = n < 0 ? inverse(a) : a;
  Tensor result;
  auto left = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  for (; left > 0; left /= 2) {
    if (left % 2 == 1) result = result.defined() ? product(result, power) : power;
    if (left > 1) power = product(power, power);
  }
  return n == 1 ? functional::copied(result) : result;
}

namespace {

/// Where to split a chain of matrices: the fewest multiplications (Cormen et al., Introduction to Algorithms, 15.2).
/// Matrix i is [sizes[i], sizes[i + 1]].
std::vector<std::vector<std::size_t>> best_splits(const std::vector<std::int64_t>& sizes) {
  const std::size_t count = sizes.size() - 1;
  std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
  std::vector<std::vector<std::size_t>> split(count, std::vector<std::size_t>(count, 0));
  for (std::size_t length = 1; length < count; ++length) {
    for (std::size_t first = 0; first + length < count; ++first) {
      const std::size_t last = first + length;
      cost[first][last] = std::numeric_limits<double>::infinity();
      for (std::size_t k = first; k < last; ++k) {
        const double own = static_cast<double>(sizes[first]) * static_cast<double>(sizes[k + 1]) *
                           static_cast<double>(sizes[last + 1]);
        const double total = cost[first][k] + cost[k + 1][last] + own;
        if (total >= cost[first][last]) continue;
        cost[first][last] = total;
        split[first][last] = k;
      }
    }
  }
  return split;
}

Tensor chained(const Tensors& matrices, const std::vector<std::vector<std::size_t>>& split, std::size_t first,
               std::size_t last) {
  if (first == last) return matrices[first];
  const std::size_t k = split[first][last];
  return matmul(chained(matrices, split, first, k), chained(matrices, split, k + 1, last));
}

}  // namespace

Tensor linalg_multi_dot(const Tensors& tensors) {
  if (tensors.size() < 2) throw ValueError("linalg_multi_dot: takes at least two tensors");
  Tensors matrices = tensors;
  const bool row = tensors.front().dim() == 1;
  const bool column = tensors.back().dim() == 1;
  if (row) matrices.front() = matrices.front().unsqueeze(0);
  if (column) matrices.back() = matrices.back().unsqueeze(1);
  std::vector<std::int64_t> sizes;
  for (const Tensor& matrix : matrices) {
    if (matrix.dim() != 2) {
      throw ShapeError("linalg_multi_dot: takes matrices; the first and the last may be vectors");
    }
    if (!sizes.empty() && sizes.back() != matrix.size(0)) {
      throw ShapeError(
          fmt::format("linalg_multi_dot: the inner sizes differ: {} and {}", sizes.back(), matrix.size(0)));
    }
    if (sizes.empty()) sizes.push_back(matrix.size(0));
    sizes.push_back(matrix.size(1));
  }
  Tensor result = chained(matrices, best_splits(sizes), 0, matrices.size() - 1);
  if (column) result = result.squeeze(-1);
  return row ? result.squeeze(0) : result;
}

}  // namespace russet
