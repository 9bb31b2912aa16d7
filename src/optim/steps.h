#pragma once
// Functions of a count of updates, which is a double, or a tensor of no axes where the device counts
// (Optimizer::coefficient_of_steps).
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

#include <algorithm>
#include <cmath>

namespace russet::optim {

inline double power(double base, double exponent) { return std::pow(base, exponent); }
inline Tensor power(double base, const Tensor& exponent) { return pow(Scalar(base), exponent); }
inline Tensor power(const Tensor& base, double exponent) { return pow(base, Scalar(exponent)); }

/// 1 - base^exponent, for a base in [0, 1). In float32 the difference would lose most digits of a base close to 1.
inline double one_minus_power(double base, double exponent) { return 1 - std::pow(base, exponent); }
inline Tensor one_minus_power(double base, const Tensor& exponent) { return -expm1(exponent * std::log(base)); }

inline double root(double value) { return std::sqrt(value); }
inline Tensor root(const Tensor& value) { return sqrt(value); }

inline double at_least(double value, double least) { return std::max(value, least); }
inline Tensor at_least(const Tensor& value, double least) { return clamp_min(value, least); }
inline double at_most(double value, double most) { return std::min(value, most); }
inline Tensor at_most(const Tensor& value, double most) { return clamp_max(value, most); }

/// 1 if value > bound, else 0.
inline double is_above(double value, double bound) { return value > bound ? 1 : 0; }
inline Tensor is_above(const Tensor& value, double bound) { return gt(value, bound).to(value.dtype()); }

}  // namespace russet::optim
