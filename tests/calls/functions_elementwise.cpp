// Elementwise functions and tensors from nothing.
#include <stdexcept>

#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

template <Tensor (*F)(const Tensor&)>
Results one(const Call& c) {
  return {F(c.tensor(0))};
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
Results two(const Call& c) {
  return {F(c.tensor(0), c.tensor(1))};
}

/// A function of two tensors, or of a tensor and a number on either side, where russet has that.
template <class F>
Results either(const Call& c, F f) {
  if (c.is_tensor(0) && c.is_tensor(1)) return {f(c.tensor(0), c.tensor(1))};
  if constexpr (std::is_invocable_v<F, Tensor, Scalar>) {
    if (c.is_tensor(0)) return {f(c.tensor(0), c.scalar(1))};
  }
  if constexpr (std::is_invocable_v<F, Scalar, Tensor>) {
    if (c.is_tensor(1)) return {f(c.scalar(0), c.tensor(1))};
  }
  throw std::runtime_error("russet has no such overload");
}

/// The same for functions whose third argument is a factor.
template <class F>
Results scaled(const Call& c, F f) {
  if (!c.has(2)) return either(c, [f](const auto& x, const auto& y) { return f(x, y); });
  if (c.is_tensor(1)) return {f(c.tensor(0), c.tensor(1), c.scalar(2))};
  return {f(c.tensor(0), c.scalar(1), c.scalar(2))};
}

Results clamped(const Call& c) {
  if (c.is_tensor(1)) return {clamp(c.tensor(0), c.tensor(1), c.tensor(2))};
  std::optional<Scalar> low;
  std::optional<Scalar> high;
  if (c.has(1)) low = c.scalar(1);
  if (c.has(2)) high = c.scalar(2);
  return {clamp(c.tensor(0), low, high)};
}

Results chosen(const Call& c) {
  const Tensor condition = c.tensor(0);
  if (c.is_tensor(1) && c.is_tensor(2)) return {where(condition, c.tensor(1), c.tensor(2))};
  if (c.is_tensor(1)) return {where(condition, c.tensor(1), c.scalar(2))};
  return {where(condition, c.scalar(1), c.tensor(2))};
}

void add_unary(Functions& table) {
  table["to"] = [](const Call& c) -> Results { return {c.tensor(0).to(dtype_of(c.text(1), DType::float32))}; };
  table.insert({{"neg", one<neg>},
                {"neg_", one<neg>},
                {"abs", one<russet::abs>},
                {"sign", one<sign>},
                {"floor", one<russet::floor>},
                {"ceil", one<russet::ceil>},
                {"trunc", one<russet::trunc>},
                {"frac", one<frac>},
                {"square", one<square>},
                {"reciprocal", one<reciprocal>},
                {"sqrt", one<russet::sqrt>},
                {"rsqrt", one<rsqrt>},
                {"exp", one<russet::exp>},
                {"exp2", one<russet::exp2>},
                {"expm1", one<russet::expm1>},
                {"log", one<russet::log>},
                {"log2", one<russet::log2>},
                {"log10", one<russet::log10>},
                {"log1p", one<russet::log1p>},
                {"sin", one<russet::sin>},
                {"cos", one<russet::cos>},
                {"tan", one<russet::tan>},
                {"asin", one<russet::asin>},
                {"acos", one<russet::acos>},
                {"atan", one<russet::atan>},
                {"sinh", one<russet::sinh>},
                {"cosh", one<russet::cosh>},
                {"tanh", one<russet::tanh>},
                {"asinh", one<russet::asinh>},
                {"acosh", one<russet::acosh>},
                {"atanh", one<russet::atanh>},
                {"erf", one<russet::erf>},
                {"erfc", one<russet::erfc>},
                {"sigmoid", one<sigmoid>},
                {"sinc", one<sinc>},
                {"isnan", one<russet::isnan>},
                {"isinf", one<russet::isinf>},
                {"isfinite", one<russet::isfinite>},
                {"isposinf", one<isposinf>},
                {"isneginf", one<isneginf>},
                {"logical_not", one<logical_not>},
                {"bitwise_not", one<bitwise_not>},
                {"deg2rad", one<deg2rad>},
                {"rad2deg", one<rad2deg>}});
  table["round"] = [](const Call& c) -> Results {
    return {c.has(1) ? russet::round(c.tensor(0), static_cast<int>(c.integer(1))) : russet::round(c.tensor(0))};
  };
  table["logit"] = [](const Call& c) -> Results {
    return {c.has(1) ? logit(c.tensor(0), c.real(1)) : logit(c.tensor(0))};
  };
}

void add_binary(Functions& table) {
  table["add"] = [](const Call& c) {
    return scaled(c, [](const auto&... x) -> decltype(add(x...)) { return add(x...); });
  };
  table["sub"] = [](const Call& c) {
    return scaled(c, [](const auto&... x) -> decltype(sub(x...)) { return sub(x...); });
  };
  table["rsub"] = [](const Call& c) -> Results { return {c.scalar(1) - c.tensor(0)}; };
  table["mul"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(mul(x, y)) { return mul(x, y); });
  };
  table["div"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(div(x, y)) { return div(x, y); });
  };
  table["div_floor"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(div(x, y)) { return div(x, y, Rounding::floor); });
  };
  table["div_trunc"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(div(x, y)) { return div(x, y, Rounding::trunc); });
  };
  table["floor_divide"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(floor_divide(x, y)) { return floor_divide(x, y); });
  };
  table["remainder"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(remainder(x, y)) { return remainder(x, y); });
  };
  table["fmod"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(fmod(x, y)) { return fmod(x, y); });
  };
  table["pow"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(pow(x, y)) { return pow(x, y); });
  };
  table["xlogy"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(xlogy(x, y)) { return xlogy(x, y); });
  };
  table["eq"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(eq(x, y)) { return eq(x, y); });
  };
  table["ne"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(ne(x, y)) { return ne(x, y); });
  };
  table["lt"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(lt(x, y)) { return lt(x, y); });
  };
  table["le"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(le(x, y)) { return le(x, y); });
  };
  table["gt"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(gt(x, y)) { return gt(x, y); });
  };
  table["ge"] = [](const Call& c) {
    return either(c, [](const auto& x, const auto& y) -> decltype(ge(x, y)) { return ge(x, y); });
  };
  table.insert({{"maximum", two<maximum>},
                {"minimum", two<minimum>},
                {"fmax", two<russet::fmax>},
                {"fmin", two<russet::fmin>},
                {"atan2", two<russet::atan2>},
                {"hypot", two<russet::hypot>},
                {"logaddexp", two<logaddexp>},
                {"logaddexp2", two<logaddexp2>},
                {"copysign", two<russet::copysign>},
                {"heaviside", two<heaviside>},
                {"logical_and", two<logical_and>},
                {"logical_or", two<logical_or>},
                {"logical_xor", two<logical_xor>},
                {"bitwise_and", two<bitwise_and>},
                {"bitwise_or", two<bitwise_or>},
                {"bitwise_xor", two<bitwise_xor>},
                {"bitwise_left_shift", two<bitwise_left_shift>},
                {"bitwise_right_shift", two<bitwise_right_shift>}});
}

void add_choices(Functions& table) {
  table["where"] = chosen;
  table["clamp"] = clamped;
  table["clamp_min"] = [](const Call& c) -> Results { return {clamp_min(c.tensor(0), c.scalar(1))}; };
  table["clamp_max"] = [](const Call& c) -> Results { return {clamp_max(c.tensor(0), c.scalar(1))}; };
  table["nan_to_num"] = [](const Call& c) -> Results {
    return {c.has(1) ? nan_to_num(c.tensor(0), c.real(1), c.real(2), c.real(3)) : nan_to_num(c.tensor(0))};
  };
  table["lerp"] = [](const Call& c) -> Results {
    if (c.is_tensor(2)) return {russet::lerp(c.tensor(0), c.tensor(1), c.tensor(2))};
    return {russet::lerp(c.tensor(0), c.tensor(1), c.scalar(2))};
  };
  table["addcmul"] = [](const Call& c) -> Results {
    if (!c.has(3)) return {addcmul(c.tensor(0), c.tensor(1), c.tensor(2))};
    return {addcmul(c.tensor(0), c.tensor(1), c.tensor(2), c.scalar(3))};
  };
  table["addcdiv"] = [](const Call& c) -> Results {
    if (!c.has(3)) return {addcdiv(c.tensor(0), c.tensor(1), c.tensor(2))};
    return {addcdiv(c.tensor(0), c.tensor(1), c.tensor(2), c.scalar(3))};
  };
  table["isclose"] = [](const Call& c) -> Results {
    if (!c.has(2)) return {isclose(c.tensor(0), c.tensor(1))};
    return {isclose(c.tensor(0), c.tensor(1), c.real(2), c.real(3), c.flag(4))};
  };
  table["promote_types"] = [](const Call& c) -> Results {
    return {zeros({}, {promote(c.tensor(0).dtype(), c.tensor(1).dtype()), c.device()})};
  };
}

void add_creation(Functions& table) {
  table["arange"] = [](const Call& c) -> Results {
    const InferredOptions options{{}, c.device()};
    if (c.has(2)) return {arange(c.scalar(0), c.scalar(1), c.scalar(2), options)};
    return {c.has(1) ? arange(c.scalar(0), c.scalar(1), options) : arange(c.scalar(0), options)};
  };
  table["linspace"] = [](const Call& c) -> Results {
    return {linspace(c.scalar(0), c.scalar(1), c.integer(2), {DType::float32, c.device()})};
  };
  table["logspace"] = [](const Call& c) -> Results {
    return {logspace(c.scalar(0), c.scalar(1), c.integer(2), 10, {DType::float32, c.device()})};
  };
  table["eye"] = [](const Call& c) -> Results {
    const TensorOptions options{DType::float32, c.device()};
    return {c.has(1) ? eye(c.integer(0), c.integer(1), options) : eye(c.integer(0), {}, options)};
  };
  table["full"] = [](const Call& c) -> Results { return {full(c.dims(0), c.scalar(1), {{}, c.device()})}; };
  table["zeros"] = [](const Call& c) -> Results { return {zeros(c.dims(0), {DType::float32, c.device()})}; };
  table["ones"] = [](const Call& c) -> Results { return {ones(c.dims(0), {DType::float32, c.device()})}; };
  table["zeros_like"] = [](const Call& c) -> Results { return {zeros_like(c.tensor(0))}; };
  table["ones_like"] = [](const Call& c) -> Results { return {ones_like(c.tensor(0))}; };
  table["full_like"] = [](const Call& c) -> Results { return {full_like(c.tensor(0), c.scalar(1))}; };
}

}  // namespace

void add_elementwise(Functions& table) {
  add_unary(table);
  add_binary(table);
  add_choices(table);
  add_creation(table);
}

}  // namespace golden
