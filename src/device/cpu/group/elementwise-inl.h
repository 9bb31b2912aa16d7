// The table of elementwise operators as expressions on vectors, and the loops around them.

// Include guard, once for each target.
#if defined(RUSSET_TILES_ELEMENTWISE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSSET_TILES_ELEMENTWISE_INL_H
#undef RUSSET_TILES_ELEMENTWISE_INL_H
#else
#define RUSSET_TILES_ELEMENTWISE_INL_H
#endif

#include <numbers>
#include <tuple>
#include <type_traits>

#include "device/cpu/group/loops.h"
#include "device/cpu/group/math-inl.h"
#include "device/cpu/group/scalar_math.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {

using ops::Op;

inline constexpr unsigned f32 = 1;
inline constexpr unsigned f64 = 2;
inline constexpr unsigned i32 = 4;
inline constexpr unsigned i64 = 8;
inline constexpr unsigned floating = f32 | f64;
inline constexpr unsigned integral = i32 | i64;
inline constexpr unsigned any = floating | integral;

/// An operator's expression for some lanes: on vectors, or on single elements (rare ones, and 64-bit integers, which
/// the compiler's own vectorisation serves as well).
template <unsigned lanes, bool on_vectors, class F>
struct Rule {
  Op op;
  static constexpr unsigned tile_types = lanes;
  static constexpr bool vectors = on_vectors;
  using Expression = F;
};
template <unsigned lanes, class F>
constexpr auto vector(Op op, F) {
  return Rule<lanes, true, F>{op};
}
template <unsigned lanes, class F>
constexpr auto element(Op op, F) {
  return Rule<lanes, false, F>{op};
}

inline constexpr auto rules = std::tuple{
    vector<any>(Op::neg, [](auto, auto x) HWY_ATTR { return hn::Neg(x); }),
    vector<any>(Op::abs, [](auto, auto x) HWY_ATTR { return hn::Abs(x); }),
    element<any>(Op::sign, [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); }),
    vector<floating>(Op::floor, [](auto, auto x) HWY_ATTR { return hn::Floor(x); }),
    vector<floating>(Op::ceil, [](auto, auto x) HWY_ATTR { return hn::Ceil(x); }),
    vector<floating>(Op::round, [](auto, auto x) HWY_ATTR { return hn::Round(x); }),
    vector<floating>(Op::trunc, [](auto, auto x) HWY_ATTR { return hn::Trunc(x); }),
    element<integral>(Op::floor, [](auto x) { return x; }),
    element<integral>(Op::ceil, [](auto x) { return x; }),
    element<integral>(Op::round, [](auto x) { return x; }),
    element<integral>(Op::trunc, [](auto x) { return x; }),
    vector<floating>(Op::exp, [](auto d, auto x) HWY_ATTR { return exponential(d, x); }),
    vector<f32>(Op::expm1,
                [](auto d, auto x) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y) HWY_ATTR { return exponential_minus_1(dd, y); }, x);
                }),
    vector<f64>(Op::expm1, [](auto d, auto x) HWY_ATTR { return exponential_minus_1(d, x); }),
    vector<floating>(Op::log, [](auto d, auto x) HWY_ATTR { return logarithm(d, x); }),
    vector<f32>(Op::log1p,
                [](auto d, auto x) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y) HWY_ATTR { return logarithm_plus_1(dd, y); }, x);
                }),
    vector<f64>(Op::log1p, [](auto d, auto x) HWY_ATTR { return logarithm_plus_1(d, x); }),
    vector<floating>(Op::sqrt, [](auto, auto x) HWY_ATTR { return hn::Sqrt(x); }),
    vector<floating>(Op::rsqrt, [](auto d, auto x) HWY_ATTR { return hn::Div(number(d, 1), hn::Sqrt(x)); }),
    vector<floating>(Op::sin, [](auto d, auto x) HWY_ATTR { return sine(d, x); }),
    vector<floating>(Op::cos, [](auto d, auto x) HWY_ATTR { return cosine(d, x); }),
    vector<f32>(Op::tan,
                [](auto d, auto x) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y) HWY_ATTR { return tangent(dd, y); }, x);
                }),
    element<f64>(Op::tan, [](double x) { return std::tan(x); }),
    vector<f32>(Op::asin, [](auto d, auto x) HWY_ATTR { return hn::Asin(d, x); }),
    element<f64>(Op::asin, [](double x) { return std::asin(x); }),
    vector<f32>(Op::acos, [](auto d, auto x) HWY_ATTR { return hn::Acos(d, x); }),
    element<f64>(Op::acos, [](double x) { return std::acos(x); }),
    vector<f32>(Op::atan, [](auto d, auto x) HWY_ATTR { return hn::Atan(d, x); }),
    element<f64>(Op::atan, [](double x) { return std::atan(x); }),
    vector<f32>(Op::sinh,
                [](auto d, auto x) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y) HWY_ATTR { return hyperbolic_sine(dd, y); }, x);
                }),
    element<f64>(Op::sinh, [](double x) { return std::sinh(x); }),
    vector<f32>(Op::cosh,
                [](auto d, auto x) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y) HWY_ATTR { return hyperbolic_cosine(dd, y); }, x);
                }),
    element<f64>(Op::cosh, [](double x) { return std::cosh(x); }),
    vector<f32>(Op::tanh, [](auto d, auto x) HWY_ATTR { return hyperbolic_tangent(d, x); }),
    vector<f64>(Op::tanh, [](auto d, auto x) HWY_ATTR { return hn::Tanh(d, x); }),
    vector<f32>(Op::erf, [](auto d, auto x) HWY_ATTR { return error_function(d, x); }),
    element<f64>(Op::erf, [](double x) { return std::erf(x); }),
    vector<f32>(Op::ndtr, [](auto d, auto x) HWY_ATTR { return normal_distribution(d, x); }),
    element<f64>(Op::ndtr, [](double x) { return std::erfc(-x * std::numbers::sqrt2 / 2) / 2; }),
    vector<floating>(Op::normal_density, [](auto d, auto x) HWY_ATTR { return normal_density(d, x); }),
    vector<floating>(Op::sigmoid, [](auto d, auto x) HWY_ATTR { return logistic(d, x); }),
    vector<integral>(Op::bitwise_not, [](auto, auto x) HWY_ATTR { return hn::Not(x); }),

    vector<any>(Op::add, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }),
    vector<any>(Op::sub, [](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); }),
    vector<floating | i32>(Op::mul, [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
    element<i64>(Op::mul, [](std::int64_t a, std::int64_t b) { return wrapping_multiply(a, b); }),
    vector<floating>(Op::div, [](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); }),
    element<any>(Op::floor_divide, [](auto a, auto b) { return floored_quotient(a, b); }),
    element<any>(Op::fmod, [](auto a, auto b) { return remainder_of(a, b); }),
    vector<f32>(Op::pow,
                [](auto d, auto a, auto b) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto x, auto y) HWY_ATTR { return power(dd, x, y); }, a, b);
                }),
    element<f64>(Op::pow, [](double a, double b) { return std::pow(a, b); }),
    element<integral>(Op::pow, [](auto a, auto b) { return integer_power(a, b); }),
    vector<f32>(Op::atan2,
                [](auto d, auto a, auto b) HWY_ATTR {
                  return in_double(
                      d, [](auto dd, auto y, auto x) HWY_ATTR { return arc_tangent_2(dd, y, x); }, a, b);
                }),
    element<f64>(Op::atan2, [](double a, double b) { return std::atan2(a, b); }),
    vector<any>(Op::maximum, [](auto d, auto a, auto b) HWY_ATTR { return larger(d, a, b); }),
    vector<any>(Op::minimum, [](auto d, auto a, auto b) HWY_ATTR { return smaller(d, a, b); }),
    vector<f32 | i32>(Op::eq, [](auto, auto a, auto b) HWY_ATTR { return hn::Eq(a, b); }),
    vector<f32 | i32>(Op::ne, [](auto, auto a, auto b) HWY_ATTR { return hn::Not(hn::Eq(a, b)); }),
    vector<f32 | i32>(Op::lt, [](auto, auto a, auto b) HWY_ATTR { return hn::Lt(a, b); }),
    vector<f32>(Op::le, [](auto, auto a, auto b) HWY_ATTR { return hn::Le(a, b); }),
    vector<i32>(Op::le, [](auto, auto a, auto b) HWY_ATTR { return hn::Not(hn::Gt(a, b)); }),
    element<f64 | i64>(Op::eq, [](auto a, auto b) { return std::int32_t{a == b}; }),
    element<f64 | i64>(Op::ne, [](auto a, auto b) { return std::int32_t{a != b}; }),
    element<f64 | i64>(Op::lt, [](auto a, auto b) { return std::int32_t{a < b}; }),
    element<f64 | i64>(Op::le, [](auto a, auto b) { return std::int32_t{a <= b}; }),
    vector<integral>(Op::bitwise_and, [](auto, auto a, auto b) HWY_ATTR { return hn::And(a, b); }),
    vector<integral>(Op::bitwise_or, [](auto, auto a, auto b) HWY_ATTR { return hn::Or(a, b); }),
    vector<integral>(Op::bitwise_xor, [](auto, auto a, auto b) HWY_ATTR { return hn::Xor(a, b); }),
    element<integral>(Op::shift_left, [](auto a, auto b) { return shifted_left(a, b); }),
    element<integral>(Op::shift_right, [](auto a, auto b) { return shifted_right(a, b); }),

    vector<any>(Op::where, [](auto, auto mask, auto a, auto b) HWY_ATTR { return hn::IfThenElse(mask, a, b); }),
};

constexpr bool covers_every_operator() {
  std::array<bool, ops::op_count> listed{};
  std::apply([&](const auto&... rule) { ((listed[at(rule.op)] = true), ...); }, rules);
  for (std::size_t op = at(Op::neg); op <= at(Op::where); ++op) {
    if (!listed[op] && op != at(Op::cast)) return false;
  }
  return true;
}
static_assert(covers_every_operator(), "an elementwise operator has no expression");

/// Copies the last, partial vector of an operand, which may end at the edge of its memory.
template <class T>
HWY_INLINE const T* padded(const T* from, std::size_t count, T* buffer) {
  for (std::size_t i = 0; i < count; ++i) buffer[i] = from[i];
  return buffer;
}

template <class D>
HWY_INLINE void store_result(D d, hn::Vec<D> value, Element<D>* out) {
  hn::StoreU(value, d, out);
}
/// Comparisons give int32 tiles of 0 and 1.
template <class D>
HWY_INLINE void store_result(D d, hn::Mask<D> mask, Element<D>* out) {
  const hn::Rebind<std::int32_t, D> di;
  hn::StoreU(hn::BitCast(di, hn::IfThenElseZero(mask, hn::BitCast(d, hn::Set(di, 1)))), di,
             reinterpret_cast<std::int32_t*>(out));
}

template <class F, class D>
inline constexpr int arity_of = std::is_invocable_v<F, D, hn::Vec<D>> ? 1 : 2;

/// One or two inputs. The partial vector at the end is copied and computed by another pass of the same loop, so that
/// the expression is compiled once.
template <class T, class F>
HWY_ATTR void run_vectors(std::size_t count, const Operands& operands) {
  const hn::ScalableTag<T> d;
  using D = decltype(d);
  constexpr int arity = arity_of<F, std::remove_const_t<D>>;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN T buffers[2][HWY_MAX_BYTES / sizeof(T)] = {};
  T* out = static_cast<T*>(operands.out);
  const T* a = static_cast<const T*>(operands.in[0]);
  const T* b = static_cast<const T*>(operands.in[1]);
  const std::size_t step_a = operands.step[0] ? lanes : 0;
  const std::size_t step_b = operands.step[1] ? lanes : 0;
  std::size_t end = count - count % lanes;
  for (std::size_t i = 0;;) {
    for (; i < end; i += lanes, a += step_a, b += step_b) {
      if constexpr (arity == 1) {
        store_result(d, F{}(d, hn::LoadU(d, a)), out + i);
      } else {
        store_result(d, F{}(d, hn::LoadU(d, a), hn::LoadU(d, b)), out + i);
      }
    }
    if (end >= count) return;
    if (step_a != 0) a = padded(a, count - end, buffers[0]);
    if (arity == 2 && step_b != 0) b = padded(b, count - end, buffers[1]);
    end += lanes;
  }
}

/// where: an int32 condition chooses between two inputs.
template <class T, class F>
HWY_ATTR void run_choice(std::size_t count, const Operands& operands) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<std::int32_t, hn::ScalableTag<T>> dc;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN T buffers[2][HWY_MAX_BYTES / sizeof(T)] = {};
  HWY_ALIGN std::int32_t conditions[HWY_MAX_BYTES / sizeof(std::int32_t)] = {};
  T* out = static_cast<T*>(operands.out);
  const auto* c = static_cast<const std::int32_t*>(operands.in[0]);
  const T* a = static_cast<const T*>(operands.in[1]);
  const T* b = static_cast<const T*>(operands.in[2]);
  const std::size_t step_c = operands.step[0] ? lanes : 0;
  const std::size_t step_a = operands.step[1] ? lanes : 0;
  const std::size_t step_b = operands.step[2] ? lanes : 0;
  std::size_t end = count - count % lanes;
  for (std::size_t i = 0;;) {
    for (; i < end; i += lanes, c += step_c, a += step_a, b += step_b) {
      const auto condition = hn::LoadU(dc, c);
      if constexpr (sizeof(T) == 4) {
        const auto mask = hn::RebindMask(d, hn::Ne(condition, hn::Zero(dc)));
        hn::StoreU(F{}(d, mask, hn::LoadU(d, a), hn::LoadU(d, b)), d, out + i);
      } else {
        const hn::Rebind<std::int64_t, hn::ScalableTag<T>> wide;
        const auto mask = hn::RebindMask(d, hn::Ne(hn::PromoteTo(wide, condition), hn::Zero(wide)));
        hn::StoreU(F{}(d, mask, hn::LoadU(d, a), hn::LoadU(d, b)), d, out + i);
      }
    }
    if (end >= count) return;
    if (step_c != 0) c = padded(c, count - end, conditions);
    if (step_a != 0) a = padded(a, count - end, buffers[0]);
    if (step_b != 0) b = padded(b, count - end, buffers[1]);
    end += lanes;
  }
}

template <class T, class F>
HWY_ATTR void run_elements(std::size_t count, const Operands& operands) {
  const T* a = static_cast<const T*>(operands.in[0]);
  if constexpr (std::is_invocable_v<F, T>) {
    auto* out = static_cast<std::invoke_result_t<F, T>*>(operands.out);
    for (std::size_t i = 0; i < count; ++i) out[i] = F{}(a[operands.step[0] ? i : 0]);
  } else {
    const T* b = static_cast<const T*>(operands.in[1]);
    auto* out = static_cast<std::invoke_result_t<F, T, T>*>(operands.out);
    const bool step_a = operands.step[0];
    const bool step_b = operands.step[1];
    for (std::size_t i = 0; i < count; ++i) out[i] = F{}(a[step_a ? i : 0], b[step_b ? i : 0]);
  }
}

template <class T>
constexpr TileType tile_type_for() {
  if constexpr (std::is_same_v<T, float>) return TileType::f32;
  if constexpr (std::is_same_v<T, double>) return TileType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return TileType::i32;
  return TileType::i64;
}

/// Enters the loops of one type of tiles into the table.
template <class T>
void install_elementwise(Loops& loops) {
  constexpr unsigned tile_type = 1U << static_cast<unsigned>(tile_type_for<T>());
  const auto install = [&]<class Rule>(const Rule& rule) {
    if constexpr ((Rule::tile_types & tile_type) != 0) {
      using F = typename Rule::Expression;
      Compute& entry = loops.compute[at(rule.op)][at(tile_type_for<T>())];
      if constexpr (!Rule::vectors) {
        entry = run_elements<T, F>;
      } else if constexpr (std::is_invocable_v<F, hn::ScalableTag<T>, hn::Mask<hn::ScalableTag<T>>,
                                               hn::Vec<hn::ScalableTag<T>>, hn::Vec<hn::ScalableTag<T>>>) {
        entry = run_choice<T, F>;
      } else {
        entry = run_vectors<T, F>;
      }
    }
  };
  std::apply([&](const auto&... rule) { (install(rule), ...); }, rules);
}

}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu::tiles
HWY_AFTER_NAMESPACE();

#endif
