#pragma once
// Functions of each element. All broadcast and promote as functional.h says; results have the broadcast shape.
#include <russet/tensor.h>
#include <limits>
#include <optional>

namespace russet {

// Arithmetic. A number may stand on either side.
/// x + alpha * y. Booleans: logical or. Throws TypeError for a floating alpha between integers.
Tensor add(const Tensor& x, const Tensor& y, Scalar alpha = 1);
Tensor add(const Tensor& x, Scalar y, Scalar alpha = 1);
Tensor add(Scalar x, const Tensor& y, Scalar alpha = 1);
/// x - alpha * y. Throws TypeError for booleans.
Tensor sub(const Tensor& x, const Tensor& y, Scalar alpha = 1);
Tensor sub(const Tensor& x, Scalar y, Scalar alpha = 1);
Tensor sub(Scalar x, const Tensor& y, Scalar alpha = 1);
Tensor mul(const Tensor& x, const Tensor& y);
Tensor mul(const Tensor& x, Scalar y);
Tensor mul(Scalar x, const Tensor& y);

/// How a quotient is rounded: not at all (integers give float32), towards zero, or down (types as they are).
enum class Rounding : std::uint8_t { none, trunc, floor };
Tensor div(const Tensor& x, const Tensor& y, Rounding rounding = Rounding::none);
Tensor div(const Tensor& x, Scalar y, Rounding rounding = Rounding::none);
Tensor div(Scalar x, const Tensor& y, Rounding rounding = Rounding::none);
Tensor floor_divide(const Tensor& x, const Tensor& y);
Tensor floor_divide(const Tensor& x, Scalar y);
Tensor floor_divide(Scalar x, const Tensor& y);
/// The remainder of the division rounded down: it has y's sign (Python's %).
Tensor remainder(const Tensor& x, const Tensor& y);
Tensor remainder(const Tensor& x, Scalar y);
Tensor remainder(Scalar x, const Tensor& y);
/// The remainder of the division rounded towards zero: it has x's sign (C's %).
Tensor fmod(const Tensor& x, const Tensor& y);
Tensor fmod(const Tensor& x, Scalar y);
/// x to the power of y. Integers to a negative number throw ValueError.
Tensor pow(const Tensor& x, const Tensor& y);
Tensor pow(const Tensor& x, Scalar y);
Tensor pow(Scalar x, const Tensor& y);
Tensor maximum(const Tensor& x, const Tensor& y);
Tensor minimum(const Tensor& x, const Tensor& y);
/// As maximum and minimum, but a NaN gives way to a number.
Tensor fmax(const Tensor& x, const Tensor& y);
Tensor fmin(const Tensor& x, const Tensor& y);

inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
inline Tensor operator+(const Tensor& x, Scalar y) { return add(x, y); }
inline Tensor operator+(Scalar x, const Tensor& y) { return add(x, y); }
inline Tensor operator-(const Tensor& x, const Tensor& y) { return sub(x, y); }
inline Tensor operator-(const Tensor& x, Scalar y) { return sub(x, y); }
inline Tensor operator-(Scalar x, const Tensor& y) { return sub(x, y); }
inline Tensor operator*(const Tensor& x, const Tensor& y) { return mul(x, y); }
inline Tensor operator*(const Tensor& x, Scalar y) { return mul(x, y); }
inline Tensor operator*(Scalar x, const Tensor& y) { return mul(x, y); }
inline Tensor operator/(const Tensor& x, const Tensor& y) { return div(x, y); }
inline Tensor operator/(const Tensor& x, Scalar y) { return div(x, y); }
inline Tensor operator/(Scalar x, const Tensor& y) { return div(x, y); }
inline Tensor operator%(const Tensor& x, const Tensor& y) { return remainder(x, y); }
inline Tensor operator%(const Tensor& x, Scalar y) { return remainder(x, y); }
inline const Tensor& operator+=(const Tensor& x, const Tensor& y) { return x.add_(y); }
inline const Tensor& operator+=(const Tensor& x, Scalar y) { return x.add_(y); }
inline const Tensor& operator-=(const Tensor& x, const Tensor& y) { return x.sub_(y); }
inline const Tensor& operator-=(const Tensor& x, Scalar y) { return x.sub_(y); }
inline const Tensor& operator*=(const Tensor& x, const Tensor& y) { return x.mul_(y); }
inline const Tensor& operator*=(const Tensor& x, Scalar y) { return x.mul_(y); }
inline const Tensor& operator/=(const Tensor& x, const Tensor& y) { return x.div_(y); }
inline const Tensor& operator/=(const Tensor& x, Scalar y) { return x.div_(y); }

// Signs and rounding; types stay.
/// Throws TypeError for booleans.
Tensor neg(const Tensor& x);
inline Tensor operator-(const Tensor& x) { return neg(x); }
Tensor abs(const Tensor& x);
/// -1, 0 or 1; 0 for NaN.
Tensor sign(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
/// To the nearest integer, halves to the even one; or to `decimals` digits after the point.
Tensor round(const Tensor& x, int decimals = 0);
Tensor trunc(const Tensor& x);
/// x - trunc(x).
Tensor frac(const Tensor& x);
Tensor square(const Tensor& x);
Tensor positive(const Tensor& x);

// Floating functions; booleans and integers become float32.
Tensor reciprocal(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// log(x / (1 - x)), with x clamped to [eps, 1 - eps] if eps is given.
Tensor logit(const Tensor& x, std::optional<double> eps = {});
/// sin(pi x) / (pi x), 1 at 0.
Tensor sinc(const Tensor& x);
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);
/// The angle of the point (x, y) = (second, first).
Tensor atan2(const Tensor& y, const Tensor& x);
/// sqrt(x^2 + y^2) without overflow.
Tensor hypot(const Tensor& x, const Tensor& y);
/// log(exp(x) + exp(y)) without overflow.
Tensor logaddexp(const Tensor& x, const Tensor& y);
Tensor logaddexp2(const Tensor& x, const Tensor& y);
/// x * log(y), 0 where x is 0 (NaN where y is NaN).
Tensor xlogy(const Tensor& x, const Tensor& y);
Tensor xlogy(const Tensor& x, Scalar y);
Tensor xlogy(Scalar x, const Tensor& y);
/// |x| with y's sign.
Tensor copysign(const Tensor& x, const Tensor& y);
/// 0 below 0, `values` at 0, 1 above.
Tensor heaviside(const Tensor& x, const Tensor& values);

// Choices.
/// x limited to [min, max]; a bound may be missing, but not both (ValueError). Where min > max the result is max.
Tensor clamp(const Tensor& x, std::optional<Scalar> min = {}, std::optional<Scalar> max = {});
/// Bounds as tensors; an undefined tensor is a missing bound.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {});
Tensor clamp_min(const Tensor& x, Scalar min);
Tensor clamp_max(const Tensor& x, Scalar max);
/// x where condition holds, else y. Throws TypeError if the condition is not boolean.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor where(const Tensor& condition, const Tensor& x, Scalar y);
Tensor where(const Tensor& condition, Scalar x, const Tensor& y);
Tensor where(const Tensor& condition, Scalar x, Scalar y);
/// NaN, infinity and -infinity replaced; the infinities by the type's largest and lowest number if not given.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});

// Combinations.
/// start + weight * (end - start).
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight);
Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight);
/// x + value * a * b.
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
/// x + value * a / b. Throws TypeError for integers.
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);

// Bits of integers and booleans; floating types throw TypeError.
Tensor bitwise_not(const Tensor& x);
Tensor bitwise_and(const Tensor& x, const Tensor& y);
Tensor bitwise_and(const Tensor& x, Scalar y);
Tensor bitwise_or(const Tensor& x, const Tensor& y);
Tensor bitwise_or(const Tensor& x, Scalar y);
Tensor bitwise_xor(const Tensor& x, const Tensor& y);
Tensor bitwise_xor(const Tensor& x, Scalar y);
Tensor bitwise_left_shift(const Tensor& x, const Tensor& count);
Tensor bitwise_left_shift(const Tensor& x, Scalar count);
Tensor bitwise_right_shift(const Tensor& x, const Tensor& count);
Tensor bitwise_right_shift(const Tensor& x, Scalar count);
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor operator&(const Tensor& x, const Tensor& y) { return bitwise_and(x, y); }
inline Tensor operator|(const Tensor& x, const Tensor& y) { return bitwise_or(x, y); }
inline Tensor operator^(const Tensor& x, const Tensor& y) { return bitwise_xor(x, y); }
inline Tensor operator&(const Tensor& x, Scalar y) { return bitwise_and(x, y); }
inline Tensor operator|(const Tensor& x, Scalar y) { return bitwise_or(x, y); }
inline Tensor operator^(const Tensor& x, Scalar y) { return bitwise_xor(x, y); }

// In place, beside those that Tensor has as members. Each returns its first argument.
const Tensor& neg_(const Tensor& x);
const Tensor& exp_(const Tensor& x);
const Tensor& sqrt_(const Tensor& x);
const Tensor& reciprocal_(const Tensor& x);
const Tensor& sigmoid_(const Tensor& x);
const Tensor& tanh_(const Tensor& x);
const Tensor& pow_(const Tensor& x, Scalar exponent);
const Tensor& clamp_(const Tensor& x, std::optional<Scalar> min = {}, std::optional<Scalar> max = {});
const Tensor& lerp_(const Tensor& start, const Tensor& end, Scalar weight);
const Tensor& addcmul_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
const Tensor& addcdiv_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);

}  // namespace russet
