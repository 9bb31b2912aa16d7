// Arithmetic of two operands, bits, and combinations.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

#include <bit>
#include <cmath>

#include "functional/autocast.h"
#include "functional/build.h"
#include "ops/failures.h"

namespace russet {

using functional::cast;
using functional::constant;
using functional::Operand;
using functional::Promoted;
using functional::promoted;
using functional::promoted_floating;
using ops::Op;

namespace {

Tensor binary(Op op, const Operand& x, const Operand& y) {
  const Promoted both = promoted(x, y);
  return autograd::apply(op, {both.x, both.y});
}

Tensor binary_floating(Op op, const Operand& x, const Operand& y) {
  const Promoted both = promoted_floating(x, y);
  return autograd::apply(op, {both.x, both.y});
}

bool is_one(const Scalar& number) { return number.to_double() == 1; }

// alpha is a number of its own, so that its value is a run-time argument.
Tensor scaled(const char* function, const Tensor& y, const Scalar& alpha) {
  if (is_one(alpha)) return y;
  if (alpha.kind() == DType::float64 && !is_floating(y.dtype())) {
    throw TypeError(fmt::format("{}: a floating factor ({}) needs a floating result, not {}", function,
                                alpha.to_double(), name_of(y.dtype())));
  }
  return autograd::apply(Op::mul, {y, functional::number(alpha, y.dtype(), y.device())});
}

Tensor sum_of(const Operand& x, const Operand& y, const Scalar& alpha) {
  const Promoted both = promoted(x, y);
  return autograd::apply(Op::add, {both.x, scaled("add", both.y, alpha)});
}

Tensor difference(const Operand& x, const Operand& y, const Scalar& alpha) {
  const Promoted both = promoted(x, y);
  if (both.dtype() == DType::boolean) {
    throw TypeError("sub: booleans have no difference. Use logical_xor, or cast with .to()");
  }
  return autograd::apply(Op::sub, {both.x, scaled("sub", both.y, alpha)});
}

// Booleans count as numbers.
Promoted promoted_numbers(const Operand& x, const Operand& y) {
  const Promoted both = promoted(x, y);
  if (both.dtype() != DType::boolean) return both;
  return {cast(both.x, DType::uint8), cast(both.y, DType::uint8)};
}

bool is_number_zero(const Tensor& x) {
  graph::NodeRef value = graph::value_of(x);
  while (value->op == Op::strided && !value->materialised()) value = value->inputs()[0];
  if (value->op == Op::scalar) return value->argument == 0;
  return value->op == Op::constant && std::get<ops::Number>(value->attributes).integer == 0;
}

// What divides integers is no number that is 0; tensors are checked when they are computed.
Promoted promoted_for_division(const char* function, const Operand& x, const Operand& y) {
  Promoted both = promoted_numbers(x, y);
  if (!is_floating(both.dtype()) && is_number_zero(both.y)) {
    ops::throw_division_by_zero(function);
  }
  return both;
}

Tensor quotient(const Operand& x, const Operand& y, RoundingMode rounding) {
  if (rounding == RoundingMode::none) return binary_floating(Op::div, x, y);
  const Promoted both = promoted_for_division("div", x, y);
  if (rounding == RoundingMode::floor) return autograd::apply(Op::floor_divide, {both.x, both.y});
  if (is_floating(both.dtype())) return trunc(autograd::apply(Op::div, {both.x, both.y}));
  // Without its remainder the dividend is a multiple: rounding down is exact.
  const Tensor multiple = autograd::apply(Op::sub, {both.x, autograd::apply(Op::fmod, {both.x, both.y})});
  return autograd::apply(Op::floor_divide, {multiple, both.y});
}

Tensor truncated_remainder(const Operand& x, const Operand& y) {
  const Promoted both = promoted_for_division("fmod", x, y);
  return autograd::apply(Op::fmod, {both.x, both.y});
}

Tensor floored_remainder(const Operand& x, const Operand& y) {
  const Promoted both = promoted_for_division("remainder", x, y);
  const Tensor rest = autograd::apply(Op::fmod, {both.x, both.y});
  const Tensor zero = constant(0, rest);
  const Tensor signs_differ = ne(lt(rest, zero), lt(both.y, zero));
  return where(bitwise_and(ne(rest, zero), signs_differ), autograd::apply(Op::add, {rest, both.y}), rest);
}

// Powers whose exponent is a number: the common ones become products and roots, which are exact and cheap.
Tensor power(const Tensor& x, const Scalar& y) {
  const bool integers = !is_floating(functional::result_type(x, y));
  if (integers && y.to_int64() < 0) {
    throw ValueError(
        fmt::format("pow: integers to the negative power {} are no integers. Cast with .to()", y.to_int64()));
  }
  const double exponent = y.to_double();
  const Tensor base = cast(x, functional::result_type(x, y));
  if (base.dtype() != DType::boolean) {
    if (exponent == 1) return functional::copied(base);
    if (exponent == 2) return square(base);
    if (exponent == 3) return base * base * base;
    if (exponent == 0.5) return sqrt(base);
    if (exponent == -0.5) return rsqrt(base);
    if (exponent == -1) return reciprocal(base);
  }
  return pow(base, functional::number(y, base.dtype(), base.device()));
}

}  // namespace

Tensor add(const Tensor& x, const Tensor& y, Scalar alpha) { return sum_of(x, y, alpha); }
Tensor add(const Tensor& x, Scalar y, Scalar alpha) { return sum_of(x, y, alpha); }
Tensor add(Scalar x, const Tensor& y, Scalar alpha) { return sum_of(x, y, alpha); }
Tensor sub(const Tensor& x, const Tensor& y, Scalar alpha) { return difference(x, y, alpha); }
Tensor sub(const Tensor& x, Scalar y, Scalar alpha) { return difference(x, y, alpha); }
Tensor sub(Scalar x, const Tensor& y, Scalar alpha) { return difference(x, y, alpha); }
Tensor mul(const Tensor& x, const Tensor& y) { return binary(Op::mul, x, y); }
Tensor mul(const Tensor& x, Scalar y) { return binary(Op::mul, x, y); }
Tensor mul(Scalar x, const Tensor& y) { return binary(Op::mul, x, y); }
Tensor div(const Tensor& x, const Tensor& y, RoundingMode rounding) { return quotient(x, y, rounding); }
Tensor div(const Tensor& x, Scalar y, RoundingMode rounding) { return quotient(x, y, rounding); }
Tensor div(Scalar x, const Tensor& y, RoundingMode rounding) { return quotient(x, y, rounding); }
Tensor floor_divide(const Tensor& x, const Tensor& y) { return quotient(x, y, RoundingMode::floor); }
Tensor floor_divide(const Tensor& x, Scalar y) { return quotient(x, y, RoundingMode::floor); }
Tensor floor_divide(Scalar x, const Tensor& y) { return quotient(x, y, RoundingMode::floor); }
Tensor remainder(const Tensor& x, const Tensor& y) { return floored_remainder(x, y); }
Tensor remainder(const Tensor& x, Scalar y) { return floored_remainder(x, y); }
Tensor remainder(Scalar x, const Tensor& y) { return floored_remainder(x, y); }
Tensor fmod(const Tensor& x, const Tensor& y) { return truncated_remainder(x, y); }
Tensor fmod(const Tensor& x, Scalar y) { return truncated_remainder(x, y); }

namespace {

Tensor power_of(const Operand& x, const Operand& y) {
  const Promoted both = promoted_numbers(x, y);
  return autograd::apply(Op::pow, {functional::autocast(Op::pow, both.x), functional::autocast(Op::pow, both.y)});
}

}  // namespace

Tensor pow(const Tensor& x, const Tensor& y) { return power_of(x, y); }
Tensor pow(const Tensor& x, Scalar y) { return power(x, y); }
Tensor pow(Scalar x, const Tensor& y) { return power_of(x, y); }

Tensor maximum(const Tensor& x, const Tensor& y) { return binary(Op::maximum, x, y); }
Tensor minimum(const Tensor& x, const Tensor& y) { return binary(Op::minimum, x, y); }

Tensor fmax(const Tensor& x, const Tensor& y) {
  const Promoted both = promoted(x, y);
  if (!is_floating(both.dtype())) return maximum(both.x, both.y);
  return where(isnan(both.x), both.y, where(isnan(both.y), both.x, maximum(both.x, both.y)));
}

Tensor fmin(const Tensor& x, const Tensor& y) {
  const Promoted both = promoted(x, y);
  if (!is_floating(both.dtype())) return minimum(both.x, both.y);
  return where(isnan(both.x), both.y, where(isnan(both.y), both.x, minimum(both.x, both.y)));
}

Tensor atan2(const Tensor& y, const Tensor& x) { return binary_floating(Op::atan2, y, x); }

Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight) {
  functional::require_floating("lerp", start);
  // The form that is exact at the nearer end, as in PyTorch.
  const Tensor distance = end - start;
  if (std::abs(weight.to_double()) < 0.5) return start + weight * distance;
  return end - Scalar(1 - weight.to_double()) * distance;
}

Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight) {
  functional::require_floating("lerp", start);
  const Tensor distance = end - start;
  const Tensor near_start = lt(abs(weight), constant(0.5, weight));
  return where(near_start, start + weight * distance, end - (constant(1, weight) - weight) * distance);
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  const Tensor product = a * b;
  return x + scaled("addcmul", product, value);
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  if (!is_floating(a.dtype()) && !is_floating(b.dtype())) {
    throw TypeError(
        fmt::format("addcdiv: takes floating types, not {} / {}. Cast with .to(), or use div with a rounding",
                    name_of(a.dtype()), name_of(b.dtype())));
  }
  return x + scaled("addcdiv", a / b, value);
}

Tensor bitwise_not(const Tensor& x) { return autograd::apply(Op::bitwise_not, {x}); }
Tensor bitwise_and(const Tensor& x, const Tensor& y) { return binary(Op::bitwise_and, x, y); }
Tensor bitwise_and(const Tensor& x, Scalar y) { return binary(Op::bitwise_and, x, y); }
Tensor bitwise_or(const Tensor& x, const Tensor& y) { return binary(Op::bitwise_or, x, y); }
Tensor bitwise_or(const Tensor& x, Scalar y) { return binary(Op::bitwise_or, x, y); }
Tensor bitwise_xor(const Tensor& x, const Tensor& y) { return binary(Op::bitwise_xor, x, y); }
Tensor bitwise_xor(const Tensor& x, Scalar y) { return binary(Op::bitwise_xor, x, y); }
Tensor bitwise_left_shift(const Tensor& x, const Tensor& count) { return binary(Op::shift_left, x, count); }
Tensor bitwise_left_shift(const Tensor& x, Scalar count) { return binary(Op::shift_left, x, count); }
Tensor bitwise_right_shift(const Tensor& x, const Tensor& count) { return binary(Op::shift_right, x, count); }
Tensor bitwise_right_shift(const Tensor& x, Scalar count) { return binary(Op::shift_right, x, count); }

}  // namespace russet
