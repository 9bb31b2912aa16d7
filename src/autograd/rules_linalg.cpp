// Gradients of factorisations. A result holds the factors one below the other, and so does its gradient. Formulas:
// Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation
// (2008); Murray, Differentiation of the Cholesky decomposition (2016); Walter and Lehmann, Algorithmic differentiation
// of linear algebra functions with application in optimum experimental design (2010); Townsend, Differentiating the
// singular value decomposition (2016).

#include "autograd/rules_detail.h"

namespace russet::autograd {
namespace {

using ops::Op;

Tensor transposed(const Tensor& x) { return x.transpose(-1, -2); }

Tensor rows(const Tensor& x, std::int64_t first, std::int64_t count) { return x.narrow(-2, first, count); }

Tensor diagonal_of(const Tensor& x) { return diagonal(x, 0, -2, -1); }

// X with A X = B.
Tensor solved(const Tensor& a, const Tensor& b, bool upper, bool unit = false) {
  return apply_as(Op::solve_triangular, {a, b}, b.dtype(), b.sizes(), ops::Linalg{.upper = upper, .unit = unit});
}

// B A^-1.
Tensor divided(const Tensor& b, const Tensor& a, bool upper, bool unit = false) {
  return transposed(solved(transposed(a), transposed(b), !upper, unit));
}

Tensor symmetric_part(const Tensor& x) { return (x + transposed(x)) * constant(x, 0.5); }

// x_j - x_i at (i, j) for vectors [..., 1, n], and 1 on the diagonal.
Tensor differences(const Tensor& x) {
  return x - transposed(x) + eye(x.size(-1), {}, {.dtype = x.dtype(), .device = x.device()});
}

// The factorisation with its vectors: the result, or made from the input where that has the values alone.
Tensor with_vectors(Op op, const Context& c) {
  if (std::get<ops::Linalg>(c.node.attributes).vectors) return c.out();
  graph::NodeInfo given;
  given.attributes = ops::Linalg{};
  return apply(op, {c.in0()}, std::move(given));
}

}  // namespace

// A' = L^-T sym(tril(L^T L')) L^-1, where tril takes half of the diagonal (Murray, equation 10).
Gradients cholesky_gradient(const Context& c, const Tensor& g) {
  const Tensor& l = c.out();
  const Tensor p = product(transposed(l), tril(g));
  const Tensor s = (tril(p) + transposed(tril(p, -1))) * constant(p, 0.5);
  return one(divided(solved(transposed(l), s, true), l, false));
}

// A[p]' = L^-T (tril(L^T L', -1) + triu(U' U^T)) U^-T; the rows go back to where they came from.
Gradients lu_gradient(const Context& c, const Tensor& g) {
  const std::int64_t n = c.shape_of(0).back();
  const Tensor packed = rows(c.out(), 0, n);
  const Tensor pivots = diagonal_of(packed);
  const Tensor zero = constant(pivots, 0);
  const Tensor nudge = where(eq(pivots, zero), constant(pivots, epsilon_of(g.dtype())), zero);
  const Tensor lower = tril(packed, -1) + eye(n, {}, {.dtype = g.dtype(), .device = g.device()});
  const Tensor upper = triu(packed) + diag_embed(nudge);
  const Tensor own = rows(g, 0, n);
  const Tensor below = tril(product(transposed(lower), tril(own, -1)), -1);
  const Tensor inner = below + triu(product(triu(own), transposed(upper)));
  const Tensor left = solved(transposed(lower), inner, true, true);
  const Tensor permuted = divided(left, transposed(upper), false);
  const Tensor back = argsort(rows(c.out(), n, 1).squeeze(-2).detach(), -1);
  return one(gather(permuted, -2, back.unsqueeze(-1).expand(permuted.sizes())));
}

// For A of at least as many rows as columns, A' = (Q' + Q copyltu(triu(R' R^T - Q^T Q'))) R^-T, where copyltu mirrors
// the upper triangle (Walter and Lehmann). Else A = [X Y], X = Q U and R = [U V] with V = Q^T Y: Y' = Q V', and Q' has
// Y V'^T added.
Gradients qr_gradient(const Context& c, const Tensor& g) {
  const std::int64_t m = c.shape_of(0)[c.shape_of(0).rank() - 2];
  const std::int64_t n = c.shape_of(0).back();
  const std::int64_t k = std::min(m, n);
  const Tensor q = rows(c.out(), 0, m);
  const Tensor r = transposed(rows(c.out(), m, k));
  const Tensor r_gradient = triu(transposed(rows(g, m, k)));
  Tensor q_gradient = rows(g, 0, m);
  Tensor beside;
  if (n > m) {
    const Tensor v_gradient = transposed(rows(g, m + k, n - k));
    const Tensor y = product(q, transposed(rows(c.out(), m + k, n - k)));
    q_gradient = q_gradient + product(y, transposed(v_gradient));
    beside = product(q, v_gradient);
  }
  const Tensor inner = triu(product(r_gradient, transposed(r)) - product(transposed(q), q_gradient));
  const Tensor mirrored = inner + transposed(triu(inner, 1));
  const Tensor own = divided(q_gradient + product(q, mirrored), transposed(r), false);
  return one(beside.defined() ? cat({own, beside}, -1) : own);
}

// A' = V (diag(w') + (V^T V') / (w_j - w_i)) V^T (Giles, 3.1), of which the symmetric part counts.
Gradients eigh_gradient(const Context& c, const Tensor& g) {
  const std::int64_t n = c.shape_of(0).back();
  const bool has_vectors = std::get<ops::Linalg>(c.node.attributes).vectors;
  const Tensor all = with_vectors(Op::eigh, c);
  const Tensor v = rows(all, 0, n);
  const Tensor value_gradient = rows(g, has_vectors ? n : 0, 1);
  if (!has_vectors) return one(product(v * value_gradient, transposed(v)));
  const Tensor along = product(transposed(v), rows(g, 0, n));
  const Tensor without_diagonal = along - diag_embed(diagonal_of(along));
  const Tensor inner = without_diagonal / differences(rows(all, n, 1)) + diag_embed(value_gradient.squeeze(-2));
  return one(symmetric_part(product(product(v, inner), transposed(v))));
}

// A' = U ((skew(U^T U') / E) S + S (skew(V^T V') / E) + diag(s')) V^T with E = s_j^2 - s_i^2 and skew(X) = X - X^T, and
// what moves the columns out of their own space: (1 - U U^T) U' S^-1 V^T + U S^-1 V'^T (1 - V V^T) (Townsend).
Gradients svd_gradient(const Context& c, const Tensor& g) {
  const std::int64_t m = c.shape_of(0)[c.shape_of(0).rank() - 2];
  const std::int64_t n = c.shape_of(0).back();
  const bool has_vectors = std::get<ops::Linalg>(c.node.attributes).vectors;
  const Tensor all = with_vectors(Op::svd, c);
  const Tensor u = rows(all, 0, m);
  const Tensor s = rows(all, m, 1);
  const Tensor v = rows(all, m + 1, n);
  const Tensor s_gradient = rows(g, has_vectors ? m : 0, 1);
  if (!has_vectors) return one(product(u * s_gradient, transposed(v)));
  const Tensor u_gradient = rows(g, 0, m);
  const Tensor v_gradient = rows(g, m + 1, n);
  const Tensor u_along = product(transposed(u), u_gradient);
  const Tensor v_along = product(transposed(v), v_gradient);
  const Tensor gaps = differences(s * s);
  const Tensor turned_left = (u_along - transposed(u_along)) / gaps * s;
  const Tensor turned_right = transposed(s) * ((v_along - transposed(v_along)) / gaps);
  const Tensor inner = turned_left + turned_right + diag_embed(s_gradient.squeeze(-2));
  Tensor result = product(product(u, inner), transposed(v));
  if (m > n) result = result + product((u_gradient - product(u, u_along)) / s, transposed(v));
  if (n > m) result = result + product(u / s, transposed(v_gradient - product(v, v_along)));
  return one(result);
}

// B' = A^-T X', A' = -B' X^T in A's triangle (Giles, 2.3.1).
Gradients solve_triangular_gradient(const Context& c, const Tensor& g) {
  const auto& wanted = std::get<ops::Linalg>(c.node.attributes);
  const Tensor right = solved(transposed(c.in0()), g, !wanted.upper, wanted.unit);
  Gradients gradients;
  if (c.needs[1]) gradients[1] = right;
  if (!c.needs[0]) return gradients;
  const Tensor own = -product(right, transposed(c.out()));
  const std::int64_t off = wanted.unit ? 1 : 0;
  gradients[0] = wanted.upper ? triu(own, off) : tril(own, -off);
  return gradients;
}

}  // namespace russet::autograd
