// Comparisons, tests of numbers, logic.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/reduction.h>

#include <cmath>
#include <limits>

#include "functional/build.h"

namespace russet {

using functional::constant;
using functional::Operand;
using functional::truth;
using ops::Op;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor compared(Op op, const Operand& x, const Operand& y) {
  const functional::Promoted both = functional::promoted(x, y);
  return autograd::apply(op, {both.x, both.y});
}

Tensor everywhere(bool value, const Tensor& like) {
  return constant(value, DType::boolean, like.device(), like.sizes());
}

}  // namespace

Tensor eq(const Tensor& x, const Tensor& y) { return compared(Op::eq, x, y); }
Tensor eq(const Tensor& x, Scalar y) { return compared(Op::eq, x, y); }
Tensor ne(const Tensor& x, const Tensor& y) { return compared(Op::ne, x, y); }
Tensor ne(const Tensor& x, Scalar y) { return compared(Op::ne, x, y); }
Tensor lt(const Tensor& x, const Tensor& y) { return compared(Op::lt, x, y); }
Tensor lt(const Tensor& x, Scalar y) { return compared(Op::lt, x, y); }
Tensor le(const Tensor& x, const Tensor& y) { return compared(Op::le, x, y); }
Tensor le(const Tensor& x, Scalar y) { return compared(Op::le, x, y); }
Tensor gt(const Tensor& x, const Tensor& y) { return compared(Op::lt, y, x); }
Tensor gt(const Tensor& x, Scalar y) { return compared(Op::lt, y, x); }
Tensor ge(const Tensor& x, const Tensor& y) { return compared(Op::le, y, x); }
Tensor ge(const Tensor& x, Scalar y) { return compared(Op::le, y, x); }

Tensor isnan(const Tensor& x) { return is_floating(x.dtype()) ? ne(x, x) : everywhere(false, x); }
Tensor isinf(const Tensor& x) {
  return is_floating(x.dtype()) ? eq(abs(x), constant(infinity, x)) : everywhere(false, x);
}
Tensor isfinite(const Tensor& x) {
  return is_floating(x.dtype()) ? lt(abs(x), constant(infinity, x)) : everywhere(true, x);
}
Tensor isposinf(const Tensor& x) {
  return is_floating(x.dtype()) ? eq(x, constant(infinity, x)) : everywhere(false, x);
}
Tensor isneginf(const Tensor& x) {
  return is_floating(x.dtype()) ? eq(x, constant(-infinity, x)) : everywhere(false, x);
}

Tensor logical_not(const Tensor& x) {
  return x.dtype() == DType::boolean ? autograd::apply(Op::bitwise_not, {x})
                                     : autograd::apply(Op::eq, {x, constant(0, x)});
}
Tensor logical_and(const Tensor& x, const Tensor& y) { return bitwise_and(truth(x), truth(y)); }
Tensor logical_or(const Tensor& x, const Tensor& y) { return bitwise_or(truth(x), truth(y)); }
Tensor logical_xor(const Tensor& x, const Tensor& y) { return bitwise_xor(truth(x), truth(y)); }

Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  functional::require_same_type("isclose", x, y);
  if (rtol < 0 || atol < 0) throw ValueError(fmt::format("isclose: negative tolerances: {} and {}", rtol, atol));
  Tensor close = eq(x, y);
  if (!is_floating(x.dtype()) && rtol == 0 && atol == 0) return close;
  const Tensor a = functional::floating(x);
  const Tensor b = functional::floating(y);
  const Tensor allowed =
      abs(b) * functional::number(rtol, b.dtype(), b.device()) + functional::number(atol, b.dtype(), b.device());
  const Tensor distance = abs(a - b);
  close = logical_or(close, logical_and(isfinite(distance), le(distance, allowed)));
  return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

bool allclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  return all(isclose(x, y, rtol, atol, equal_nan)).item<bool>();
}

bool equal(const Tensor& x, const Tensor& y) {
  if (x.sizes() != y.sizes()) return false;
  functional::require_same_type("equal", x, y);
  return all(eq(x, y)).item<bool>();
}

}  // namespace russet
