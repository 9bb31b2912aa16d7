// Functions of one operand, and choices.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

#include <cmath>
#include <numbers>

#include "functional/autocast.h"
#include "functional/build.h"

namespace russet {

using functional::cast;
using functional::constant;
using functional::floating;
using ops::Op;

namespace {

Tensor unary_floating(Op op, const Tensor& x) { return autograd::apply(op, {functional::autocast(op, floating(x))}); }

// Integers and booleans are whole already.
Tensor rounded(Op op, const Tensor& x) {
  return is_floating(x.dtype()) ? autograd::apply(op, {x}) : functional::copied(x);
}

}  // namespace

Tensor neg(const Tensor& x) {
  if (x.dtype() == DType::boolean)
    throw TypeError("neg: booleans have no negative. Use logical_not, or cast with .to()");
  return autograd::apply(Op::neg, {x});
}
Tensor abs(const Tensor& x) {
  return x.dtype() == DType::boolean ? functional::copied(x) : autograd::apply(Op::abs, {x});
}
Tensor sign(const Tensor& x) { return autograd::apply(Op::sign, {x}); }
Tensor floor(const Tensor& x) { return rounded(Op::floor, x); }
Tensor ceil(const Tensor& x) { return rounded(Op::ceil, x); }
Tensor trunc(const Tensor& x) { return rounded(Op::trunc, x); }
Tensor round(const Tensor& x, std::int64_t decimals) {
  if (decimals == 0 || !is_floating(x.dtype())) return rounded(Op::round, x);
  const Tensor unit = constant(std::pow(10.0, static_cast<double>(std::abs(decimals))), x);
  return decimals > 0 ? rounded(Op::round, x * unit) / unit : rounded(Op::round, x / unit) * unit;
}
Tensor frac(const Tensor& x) {
  functional::require_floating("frac", x);
  return x - trunc(x);
}
Tensor square(const Tensor& x) {
  const Tensor value = x.dtype() == DType::boolean ? cast(x, DType::int64) : x;
  return autograd::apply(Op::mul, {value, value});
}
Tensor positive(const Tensor& x) {
  if (x.dtype() == DType::boolean) throw TypeError("positive: takes numbers, not bool");
  return x;
}

Tensor reciprocal(const Tensor& x) {
  const Tensor f = functional::autocast(ops::Autocast::float32, floating(x));
  return constant(1, f) / f;
}
Tensor sqrt(const Tensor& x) { return unary_floating(Op::sqrt, x); }
Tensor rsqrt(const Tensor& x) { return unary_floating(Op::rsqrt, x); }
Tensor exp(const Tensor& x) { return unary_floating(Op::exp, x); }
Tensor expm1(const Tensor& x) { return unary_floating(Op::expm1, x); }
Tensor log(const Tensor& x) { return unary_floating(Op::log, x); }
Tensor log1p(const Tensor& x) { return unary_floating(Op::log1p, x); }
Tensor sin(const Tensor& x) { return unary_floating(Op::sin, x); }
Tensor cos(const Tensor& x) { return unary_floating(Op::cos, x); }
Tensor tan(const Tensor& x) { return unary_floating(Op::tan, x); }
Tensor asin(const Tensor& x) { return unary_floating(Op::asin, x); }
Tensor acos(const Tensor& x) { return unary_floating(Op::acos, x); }
Tensor atan(const Tensor& x) { return unary_floating(Op::atan, x); }
Tensor sinh(const Tensor& x) { return unary_floating(Op::sinh, x); }
Tensor cosh(const Tensor& x) { return unary_floating(Op::cosh, x); }
Tensor tanh(const Tensor& x) { return unary_floating(Op::tanh, x); }
Tensor erf(const Tensor& x) { return unary_floating(Op::erf, x); }
Tensor sigmoid(const Tensor& x) { return unary_floating(Op::sigmoid, x); }

Tensor erfc(const Tensor& x) {
  const Tensor f = floating(x);
  return constant(1, f) - erf(f);
}
Tensor exp2(const Tensor& x) {
  const Tensor f = floating(x);
  return pow(constant(2, f), f);
}
Tensor log2(const Tensor& x) {
  const Tensor f = functional::wide(x);
  return cast(log(f) * constant(std::numbers::log2e, f), floating(x).dtype());
}
Tensor log10(const Tensor& x) {
  const Tensor f = functional::wide(x);
  return cast(log(f) * constant(std::numbers::log10e, f), floating(x).dtype());
}
Tensor deg2rad(const Tensor& x) {
  const Tensor f = floating(x);
  return f * constant(std::numbers::pi / 180, f);
}
Tensor rad2deg(const Tensor& x) {
  const Tensor f = floating(x);
  return f * constant(180 / std::numbers::pi, f);
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  const Tensor f = floating(x);
  const Tensor p = eps ? clamp(f, Scalar(*eps), Scalar(1 - *eps)) : f;
  return log(p / (constant(1, p) - p));
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  if (condition.dtype() != DType::boolean) {
    throw TypeError(fmt::format("where: the condition is bool, not {}", name_of(condition.dtype())));
  }
  const functional::Promoted both = functional::promoted(x, y);
  return autograd::apply(Op::where, {condition, both.x, both.y});
}

namespace {

Tensor chosen(const Tensor& condition, const functional::Operand& x, const functional::Operand& y) {
  const functional::Operand both[] = {x, y};
  const DType dtype = functional::result_type(both);
  const auto side = [&](const functional::Operand& operand) {
    return operand.is_number() ? functional::held_number("where", operand.number(), dtype, condition.device())
                               : cast(operand.tensor(), dtype);
  };
  return where(condition, side(x), side(y));
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& x, Scalar y) { return chosen(condition, x, y); }
Tensor where(const Tensor& condition, Scalar x, const Tensor& y) { return chosen(condition, x, y); }
Tensor where(const Tensor& condition, Scalar x, Scalar y) { return chosen(condition, x, y); }

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return functional::copied(x);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto value = [&](double number) { return functional::number(number, x.dtype(), x.device()); };
  const double largest = functional::largest_of(x.dtype());
  const Tensor below = where(eq(x, constant(-infinity, x)), value(neginf.value_or(-largest)), x);
  const Tensor bounded = where(eq(x, constant(infinity, x)), value(posinf.value_or(largest)), below);
  return where(isnan(x), value(nan), bounded);
}

Tensor copysign(const Tensor& x, const Tensor& y) {
  const functional::Promoted both = functional::promoted_floating(x, y);
  // atan2(±0, -1) = ±pi tells the zeros apart.
  const Tensor angle = autograd::apply(Op::atan2, {both.y.detach(), constant(-1, both.y)});
  const Tensor magnitude = abs(both.x);
  return where(lt(angle, constant(0, angle)), neg(magnitude), magnitude);
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  functional::require_same_type("heaviside", x, values);
  const Tensor zero = constant(0, x);
  const Tensor step = cast(gt(x, zero), x.dtype());
  return where(eq(x, zero), values, where(isnan(x), x, step));
}

}  // namespace russet
