// Matrix products.
#include <fmt/format.h>

#include <russet/functional/elementwise.h>
#include <russet/functional/matmul.h>
#include <russet/functional/reduction.h>
#include <algorithm>

#include "functional/autocast.h"
#include "functional/build.h"
#include "functional/promotion.h"

namespace russet {

using functional::cast;
using ops::Op;

namespace {

[[noreturn]] void throw_inner(const char* function, const Tensor& a, const Tensor& b, std::int64_t left,
                              std::int64_t right) {
  const bool transposed = b.dim() >= 2 && b.size(-1) == left;
  throw ShapeError(fmt::format("{}: the inner sizes differ: {} x {} ({} and {}){}", function, to_string(a.sizes()),
                               to_string(b.sizes()), left, right, transposed ? ". Transpose the second factor?" : ""));
}

/// The primitive: matrices, or batches of equal rank. Booleans have no products.
Tensor autocast_product(const Tensor& a, const Tensor& b) {
  return autograd::apply(Op::matmul, {functional::autocast(Op::matmul, a), functional::autocast(Op::matmul, b)});
}

/// The factors of a product that autocast runs in the widest type of the two.
functional::Promoted widest(const Tensor& a, const Tensor& b) {
  return is_autocast_enabled() ? functional::promoted(a, b) : functional::Promoted{a, b};
}

void require_rank(const char* function, const Tensor& a, int rank_a, const Tensor& b, int rank_b) {
  if (a.dim() == rank_a && b.dim() == rank_b) return;
  throw ShapeError(fmt::format("{}: takes tensors of {} and {} dimensions, not {} and {}", function, rank_a, rank_b,
                               to_string(a.sizes()), to_string(b.sizes())));
}

Tensor with_leading_axes(Tensor x, int rank) {
  while (x.dim() < rank) x = x.unsqueeze(0);
  return x;
}

/// [..., k] x [k, n] as one product of matrices: [rows, k] x [k, n].
Tensor folded(const Tensor& a, const Tensor& b) {
  Shape sizes = a.sizes();
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < sizes.rank(); ++axis) rows *= sizes[axis];
  const Tensor result = autocast_product(a.reshape({rows, sizes.back()}), b);
  sizes[sizes.rank() - 1] = b.sizes()[1];
  return result.reshape(sizes);
}

Tensor scaled(const Tensor& x, const Scalar& factor) {
  if (factor.to_double() == 1) return x;
  return x * functional::number(factor, x.dtype(), x.device());
}

/// beta * x + alpha * product, in the product's type (which autocast may have lowered).
Tensor combined(const char* function, const Tensor& x, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  if (broadcast(x.sizes(), product.sizes()) != product.sizes()) {
    throw ShapeError(fmt::format("{}: {} does not broadcast to the product's {}", function, to_string(x.sizes()),
                                 to_string(product.sizes())));
  }
  const Tensor second = scaled(product, alpha);
  if (beta.to_double() != 0) return scaled(cast(x, second.dtype()), beta) + second;
  // A beta of 0 hides x, NaN included; its gradient is zero.
  if (!x.requires_grad()) return second;
  return autograd::with_gradient(function, {x, second}, second, {}, false,
                                 [](const Tensor& g, std::span<const Tensor>) {
                                   return std::vector<Tensor>{functional::constant(0, g, g.sizes()), g};
                                 });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0) {
    throw ShapeError(fmt::format("matmul: takes tensors with dimensions: {} x {}. Use mul for numbers",
                                 to_string(a.sizes()), to_string(b.sizes())));
  }
  const std::int64_t left = a.size(-1);
  const std::int64_t right = b.size(b.dim() == 1 ? 0 : -2);
  if (left != right) throw_inner("matmul", a, b, left, right);
  if (a.dim() == 1 && b.dim() == 1) return autocast_product(a.unsqueeze(0), b.unsqueeze(1)).reshape({});
  if (a.dim() == 1) return matmul(a.unsqueeze(0), b).squeeze(-2);
  if (b.dim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (a.dim() == 2 && b.dim() == 2) return autocast_product(a, b);
  if (b.dim() == 2) return folded(a, b);
  const int rank = std::max(a.dim(), b.dim());
  return autocast_product(with_leading_axes(a, rank), with_leading_axes(b, rank));
}

Tensor mm(const Tensor& a, const Tensor& b) {
  require_rank("mm", a, 2, b, 2);
  return matmul(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  require_rank("bmm", a, 3, b, 3);
  if (a.size(0) != b.size(0)) {
    throw ShapeError(
        fmt::format("bmm: the numbers of matrices differ: {} x {}", to_string(a.sizes()), to_string(b.sizes())));
  }
  return matmul(a, b);
}

Tensor mv(const Tensor& a, const Tensor& v) {
  require_rank("mv", a, 2, v, 1);
  return matmul(a, v);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  require_rank("dot", a, 1, b, 1);
  const functional::Promoted both = widest(a, b);
  const Autocast as_they_are(DType::float32, false);
  return matmul(both.x, both.y);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_rank("outer", a, 1, b, 1);
  return a.unsqueeze(1) * b;
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  return combined("addmm", x, mm(a, b), beta, alpha);
}

Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  return combined("baddbmm", x, bmm(a, b), beta, alpha);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.dim() == 0 || weight.dim() == 0 || weight.dim() > 2) {
    throw ShapeError(fmt::format("linear: takes x [..., in] and a weight [out, in], not {} and {}",
                                 to_string(x.sizes()), to_string(weight.sizes())));
  }
  if (x.size(-1) != weight.size(-1)) {
    throw ShapeError(fmt::format("linear: x {} has {} features, the weight {} takes {}", to_string(x.sizes()),
                                 x.size(-1), to_string(weight.sizes()), weight.size(-1)));
  }
  if (x.dim() > 2 && weight.dim() == 2) {
    // Rows as one product: the bias then stands next to it, and becomes part of it.
    Shape sizes = x.sizes();
    sizes[x.dim() - 1] = weight.size(0);
    return linear(x.reshape({numel(x.sizes()) / std::max<std::int64_t>(1, x.size(-1)), x.size(-1)}), weight, bias)
        .reshape(sizes);
  }
  const Tensor result = matmul(x, weight.t());
  if (!bias.defined()) return result;
  if (broadcast(bias.sizes(), result.sizes()) != result.sizes()) {
    throw ShapeError(fmt::format("linear: the bias {} does not fit the result {}", to_string(bias.sizes()),
                                 to_string(result.sizes())));
  }
  return result + cast(bias, result.dtype());
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t dims) {
  if (dims < 0 || dims > a.dim() || dims > b.dim()) {
    throw ValueError(
        fmt::format("tensordot: {} dimensions of {} and {}", dims, to_string(a.sizes()), to_string(b.sizes())));
  }
  const auto axes = static_cast<int>(dims);
  Shape sizes;
  std::int64_t inner = 1;
  for (int axis = 0; axis < a.dim() - axes; ++axis) sizes.push_back(a.sizes()[axis]);
  for (int i = 0; i < axes; ++i) {
    const std::int64_t size = a.sizes()[a.dim() - axes + i];
    if (size != b.sizes()[i]) throw_inner("tensordot", a, b, size, b.sizes()[i]);
    inner *= size;
  }
  const std::int64_t rows = numel(sizes);
  std::int64_t columns = 1;
  for (int axis = axes; axis < b.dim(); ++axis) {
    sizes.push_back(b.sizes()[axis]);
    columns *= b.sizes()[axis];
  }
  const functional::Promoted both = widest(a.reshape({rows, inner}), b.reshape({inner, columns}));
  const Autocast as_they_are(DType::float32, false);
  return autocast_product(both.x, both.y).reshape(sizes);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int rank = std::max(a.dim(), b.dim());
  Tensor left = with_leading_axes(a, rank);
  Tensor right = with_leading_axes(b, rank);
  if (2 * rank > max_rank) throw ShapeError(fmt::format("kron: takes tensors of at most {} dimensions", max_rank / 2));
  Shape sizes;
  for (int axis = 0; axis < rank; ++axis) {
    sizes.push_back(left.sizes()[2 * axis] * right.sizes()[2 * axis]);
    left = left.unsqueeze(2 * axis + 1);
    right = right.unsqueeze(2 * axis);
  }
  return (left * right).reshape(sizes);
}

}  // namespace russet
