// Vector functions that Highway 1.0.3 lacks, or has without zeros, infinities, NaN and large arguments. Each takes
// float or double lanes over the whole range; errors are a few units in the last place.

// Include guard, once for each target.
#if defined(RUSSET_TILES_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSSET_TILES_MATH_INL_H
#undef RUSSET_TILES_MATH_INL_H
#else
#define RUSSET_TILES_MATH_INL_H
#endif

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Element = hn::TFromD<D>;
template <class D>
inline constexpr bool is_float32 = sizeof(Element<D>) == 4;

template <class D>
HWY_INLINE hn::Vec<D> number(D d, double value) {
  return hn::Set(d, static_cast<Element<D>>(value));
}
template <class D>
HWY_INLINE hn::Vec<D> infinity(D d) {
  return hn::Set(d, std::numeric_limits<Element<D>>::infinity());
}
template <class D>
HWY_INLINE hn::Vec<D> nan(D d) {
  return hn::Set(d, std::numeric_limits<Element<D>>::quiet_NaN());
}
/// Where x is NaN. Highway's Ne is no help: it is false for NaN on some targets.
template <class D>
HWY_INLINE hn::Mask<D> is_nan(D d, hn::Vec<D> x) {
  if constexpr (std::is_floating_point_v<Element<D>>) {
    return hn::IsNaN(x);
  } else {
    return hn::MaskFromVec(hn::Zero(d));
  }
}
/// y, but x where x is NaN.
template <class D, class V>
HWY_INLINE V keep_nan(D d, V x, V y) {
  return hn::IfThenElse(is_nan(d, x), x, y);
}
template <class D, class V>
HWY_INLINE V clamped(D d, V x, double low, double high) {
  return hn::Max(number(d, low), hn::Min(number(d, high), x));
}

/// Computes a function of float32 lanes in float64: for functions that are rare and hard to get right.
template <class D, class F, class... V>
HWY_INLINE hn::Vec<D> in_double(D d, F f, V... x) {
#if HWY_TARGET == HWY_SCALAR
  // Highway's own demotion turns infinities into the largest number here.
  const hn::Rebind<double, D> dd;
  return hn::Set(d, static_cast<float>(hn::GetLane(f(dd, hn::PromoteTo(dd, x)...))));
#else
  const hn::Half<D> dh;
  const hn::Rebind<double, hn::Half<D>> dd;
  return hn::Combine(d, hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x))...)),
                     hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x))...)));
#endif
}

/// y, but f(x) element by element where |x| is beyond `limit`.
template <class D, class V, class F>
HWY_INLINE V beyond(D d, V x, V y, double limit, F f) {
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), number(d, limit))))) return y;
  HWY_ALIGN Element<D> xs[HWY_MAX_BYTES / sizeof(Element<D>)];
  HWY_ALIGN Element<D> ys[HWY_MAX_BYTES / sizeof(Element<D>)];
  hn::Store(x, d, xs);
  hn::Store(y, d, ys);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::abs(xs[i]) <= static_cast<Element<D>>(limit))) ys[i] = f(xs[i]);
  }
  return hn::Load(d, ys);
}

#if HWY_TARGET == HWY_AVX3
/// x times 2 to the power of q, rounded once, whatever q is.
HWY_INLINE hn::Vec512<float> scaled(hn::Vec512<float> x, hn::Vec512<float> q) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, q.raw)};
}
HWY_INLINE hn::Vec512<double> scaled(hn::Vec512<double> x, hn::Vec512<double> q) {
  return hn::Vec512<double>{_mm512_scalef_pd(x.raw, q.raw)};
}
#endif

template <class D, class V>
HWY_INLINE V exponential(D d, V x) {
  hn::impl::ExpImpl<Element<D>> impl;
  // Beyond these the scaling below over- or underflows as it should.
  const V c = is_float32<D> ? clamped(d, x, -104.5, 89.0) : clamped(d, x, -746.0, 710.0);
#if HWY_TARGET == HWY_AVX3
  // On x86, Min and Max return their second operand when one is NaN, so c is NaN where x is.
  const V q = hn::Round(hn::Mul(c, number(d, 1.442695040888963407)));
  const V high = hn::MulAdd(q, number(d, is_float32<D> ? -0.693145751953125 : -0.6931471805596629565116018), c);
  const V low = is_float32<D> ? number(d, -1.428606765330187045e-6) : number(d, -0.28235290563031577122588448175e-12);
  return scaled(hn::Add(impl.ExpPoly(d, hn::MulAdd(q, low, high)), number(d, 1)), q);
#else
  const auto q = impl.ToInt32(d, hn::MulAdd(c, number(d, 1.442695040888963407), hn::CopySign(number(d, 0.5), c)));
  const V poly = hn::Add(impl.ExpPoly(d, impl.ExpReduce(d, c, q)), number(d, 1));
  return keep_nan(d, x, impl.LoadExpShortRange(d, poly, q));
#endif
}

template <class D, class V>
HWY_INLINE V logarithm(D d, V x) {
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, infinity(d)), x, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity(d)), y);
  return keep_nan(d, x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan(d), y));
}

template <class D, class V>
HWY_INLINE V exponential_minus_1(D d, V x) {
  const V c = is_float32<D> ? clamped(d, x, -104.5, 89.0) : clamped(d, x, -746.0, 710.0);
  return keep_nan(d, x, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::Expm1(d, c)));
}

template <class D, class V>
HWY_INLINE V logarithm_plus_1(D d, V x) {
  const V y = hn::Add(x, number(d, 1));
  // log(y) corrected by what the addition lost (Kahan).
  const V corrected = hn::Mul(logarithm(d, y), hn::Div(x, hn::Sub(y, number(d, 1))));
  const V z = hn::IfThenElse(hn::Eq(y, number(d, 1)), x, corrected);
  const auto edge = hn::Or(hn::Eq(y, hn::Zero(d)), hn::Eq(x, infinity(d)));
  return hn::IfThenElse(edge, logarithm(d, y), z);
}

template <class D, class V>
HWY_INLINE V logistic(D d, V x) {
  // exp of a negative number cannot overflow. The result for negative x is not 1 - r, which would lose digits.
  const V e = exponential(d, hn::Neg(hn::Abs(x)));
  const V r = hn::Div(number(d, 1), hn::Add(number(d, 1), e));
  return keep_nan(d, x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, r), r));
}

/// For float32 lanes, as in S. Moshier's Cephes, within 1.5 ulp: a polynomial near zero, 1 - 2 / (e^2x + 1) beyond.
template <class D, class V>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
  const V s = hn::Mul(x, x);
  V near = number(d, -5.70498872745e-3);
  near = hn::MulAdd(near, s, number(d, 2.06390887954e-2));
  near = hn::MulAdd(near, s, number(d, -5.37397155531e-2));
  near = hn::MulAdd(near, s, number(d, 1.33314422036e-1));
  near = hn::MulAdd(near, s, number(d, -3.33332819422e-1));
  near = hn::MulAdd(hn::Mul(near, s), x, x);
  const V t = hn::Abs(x);
  const V e = exponential(d, hn::Add(t, t));
  const V far = hn::Sub(number(d, 1), hn::Div(number(d, 2), hn::Add(e, number(d, 1))));
  return hn::IfThenElse(hn::Lt(t, number(d, 0.625)), near, hn::CopySign(far, x));
}

/// Polynomials by N. Juffa (https://stackoverflow.com/a/35148199), within 1 ulp.
template <class D, class V>
HWY_INLINE V error_function(D d, V x) {
  const V t = hn::Abs(x);
  const V s = hn::Mul(x, x);
  V far = hn::MulAdd(number(d, -1.72853470e-5), t, number(d, 3.83197126e-4));
  const V u = hn::MulAdd(number(d, -3.88396438e-3), t, number(d, 2.42546219e-2));
  far = hn::MulAdd(far, s, u);
  far = hn::MulAdd(far, t, number(d, -1.06777877e-1));
  far = hn::MulAdd(far, t, number(d, -6.34846687e-1));
  far = hn::MulAdd(far, t, number(d, -1.28717512e-1));
  far = hn::MulAdd(far, t, hn::Neg(t));
  // From 4 on the result is 1, and the polynomial is wrong.
  far = hn::IfThenElse(hn::Gt(t, number(d, 4)), number(d, -20), far);
  far = hn::CopySign(hn::Sub(number(d, 1), exponential(d, far)), x);
  V near = number(d, -5.96761703e-4);
  near = hn::MulAdd(near, s, number(d, 4.99119423e-3));
  near = hn::MulAdd(near, s, number(d, -2.67681349e-2));
  near = hn::MulAdd(near, s, number(d, 1.12819925e-1));
  near = hn::MulAdd(near, s, number(d, -3.76125336e-1));
  near = hn::MulAdd(near, s, number(d, 1.28379166e-1));
  near = hn::MulAdd(near, x, x);
  return keep_nan(d, x, hn::IfThenElse(hn::Gt(t, number(d, 0.927734375)), far, near));
}

/// As of math.metal.
template <class D, class V>
HWY_INLINE V normal_distribution(D d, V x) {
  const V t = hn::Abs(x);
  V r = number(d, -2.22784529e-8);
  r = hn::MulAdd(r, t, number(d, 6.90116622e-7));
  r = hn::MulAdd(r, t, number(d, -9.16273621e-6));
  r = hn::MulAdd(r, t, number(d, 6.60636651e-5));
  r = hn::MulAdd(r, t, number(d, -0.000244728755));
  r = hn::MulAdd(r, t, number(d, -6.95423078e-5));
  r = hn::MulAdd(r, t, number(d, 0.0070266421));
  r = hn::MulAdd(r, t, number(d, -0.0524903871));
  r = hn::MulAdd(r, t, number(d, -0.45920676));
  r = hn::MulAdd(r, t, number(d, -1.15110552));
  const V exponent = hn::MulAdd(r, t, number(d, -1));
  const V tail = exponential(d, hn::Mul(exponent, number(d, std::numbers::ln2)));
  return keep_nan(d, x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(number(d, 1), tail)));
}

/// The density of the standard normal distribution.
template <class D, class V>
HWY_INLINE V normal_density(D d, V x) {
  const V power = exponential(d, hn::Mul(hn::Mul(x, x), number(d, -0.5)));
  return hn::Mul(power, number(d, std::numbers::inv_sqrtpi / std::numbers::sqrt2));
}

// Highway's reduction of sine and cosine is exact enough up to here.
inline constexpr double trigonometric_limit = 39000;

template <class D, class V>
HWY_INLINE V sine(D d, V x) {
  const V y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::Sin(d, x));
  return beyond(d, x, y, trigonometric_limit, [](auto value) { return std::sin(value); });
}
template <class D, class V>
HWY_INLINE V cosine(D d, V x) {
  return beyond(d, x, hn::Cos(d, x), trigonometric_limit, [](auto value) { return std::cos(value); });
}
template <class D, class V>
HWY_INLINE V tangent(D d, V x) {
  return hn::Div(sine(d, x), cosine(d, x));
}

template <class D, class V>
HWY_INLINE V hyperbolic_sine(D d, V x) {
  // sinh x = (y + y / (y + 1)) / 2 with y = e^|x| - 1, which is exact for small x.
  const V y = exponential_minus_1(d, hn::Abs(x));
  const V quotient = hn::Div(y, hn::Add(y, number(d, 1)));
  const V z = hn::Mul(number(d, 0.5), hn::Add(y, hn::IfThenElse(hn::Eq(y, infinity(d)), number(d, 1), quotient)));
  return keep_nan(d, x, hn::CopySign(z, x));
}
template <class D, class V>
HWY_INLINE V hyperbolic_cosine(D d, V x) {
  const V e = exponential(d, hn::Abs(x));
  return hn::Mul(number(d, 0.5), hn::Add(e, hn::Div(number(d, 1), e)));
}

template <class D, class V>
HWY_INLINE V arc_tangent_2(D d, V y, V x) {
  const V ay = hn::Abs(y);
  const V ax = hn::Abs(x);
  const V large = hn::Max(ax, ay);
  V ratio = hn::Div(hn::Min(ax, ay), large);
  ratio = hn::IfThenElse(hn::Eq(large, hn::Zero(d)), hn::Zero(d), ratio);
  ratio = hn::IfThenElse(hn::Eq(hn::Min(ax, ay), infinity(d)), number(d, 1), ratio);
  V angle = hn::Atan(d, ratio);
  angle = hn::IfThenElse(hn::Gt(ay, ax), hn::Sub(number(d, 1.57079632679489661923), angle), angle);
  const auto left = hn::Lt(hn::CopySign(number(d, 1), x), hn::Zero(d));
  angle = hn::CopySign(hn::IfThenElse(left, hn::Sub(number(d, 3.14159265358979323846), angle), angle), y);
  return keep_nan(d, y, keep_nan(d, x, angle));
}

/// For float64 lanes that hold float32 numbers: exp(y log |x|) loses digits that only float64 results would show.
template <class D, class V>
HWY_INLINE V power(D d, V x, V y) {
  const V magnitude = hn::Abs(x);
  const V one = number(d, 1);
  V r = exponential(d, hn::Mul(y, logarithm(d, magnitude)));
  r = hn::IfThenElse(hn::Eq(magnitude, one), one, r);
  const V half = hn::Mul(y, number(d, 0.5));
  const auto odd = hn::And(hn::Eq(hn::Floor(y), y), hn::Ne(hn::Floor(half), half));
  const auto negative = hn::Lt(hn::CopySign(one, x), hn::Zero(d));
  r = hn::IfThenElse(hn::And(negative, odd), hn::Neg(r), r);
  const auto below = hn::And(hn::Lt(x, hn::Zero(d)), hn::Ne(hn::Floor(y), y));
  r = hn::IfThenElse(hn::And(below, hn::Ne(magnitude, infinity(d))), nan(d), r);
  r = keep_nan(d, x, keep_nan(d, y, r));
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, hn::Zero(d))), one, r);
}

// The larger and the smaller of two numbers, or NaN. -0 is smaller than 0: of two zeros the signs decide, not the
// order.
template <class D, class V>
HWY_INLINE V larger(D d, V a, V b) {
  if constexpr (std::is_integral_v<Element<D>>) return hn::Max(a, b);
  const V otherwise = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), b);
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), is_nan(d, a)), a, otherwise);
}
template <class D, class V>
HWY_INLINE V smaller(D d, V a, V b) {
  if constexpr (std::is_integral_v<Element<D>>) return hn::Min(a, b);
  const V otherwise = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), b);
  return hn::IfThenElse(hn::Or(hn::Lt(a, b), is_nan(d, a)), a, otherwise);
}

/// Loads `count` elements, fewer than a vector; the rest is `rest`. Touches no memory beyond them.
template <class D, class V>
HWY_INLINE V load_partial(D d, const Element<D>* memory, std::size_t count, V rest) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const auto mask = hn::FirstN(d, count);
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, memory), rest);
#else
  HWY_ALIGN Element<D> buffer[HWY_MAX_BYTES / sizeof(Element<D>)];
  hn::Store(rest, d, buffer);
  for (std::size_t i = 0; i < count; ++i) buffer[i] = memory[i];
  return hn::Load(d, buffer);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu::tiles
HWY_AFTER_NAMESPACE();

#endif
