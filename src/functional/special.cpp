// Functions that own their gradient: the chained one would be wrong or lose digits at corners.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

#include <numbers>

#include "functional/build.h"

namespace russet {

using autograd::with_gradient;
using functional::constant;
using functional::floating;
using functional::outside_tape;
using functional::Promoted;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

/// f of |x|, computed in float32 or better, with x's sign and type.
template <class Function>
Tensor odd(const Tensor& x, Function&& of_magnitude) {
  const Tensor w = functional::wide(x);
  const Tensor result = of_magnitude(abs(w));
  return functional::cast(where(lt(w, constant(0, w)), neg(result), result), x.dtype());
}

// log(1 + y + ...) where squares overflow.
Tensor log_doubled(const Tensor& y) { return log(y) + constant(std::numbers::ln2, y); }

// The derivative of sin(pi x) / (pi x). Near zero its terms cancel; there, Taylor's series is exact to rounding.
Tensor sinc_slope(const Tensor& x) {
  const Tensor y = functional::wide(x) * constant(std::numbers::pi, functional::wide(x));
  const Tensor near = lt(abs(y), constant(0.5, y));
  const Tensor z = where(near, y * y, constant(0, y));
  Tensor series = constant(0, y);
  // The coefficients of y^(2k - 1): (-1)^k 2k / (2k + 1)!.
  for (const double coefficient :
       {12.0 / 6227020800, -10.0 / 39916800, 8.0 / 362880, -6.0 / 5040, 4.0 / 120, -2.0 / 6}) {
    series = series * z + constant(coefficient, y);
  }
  const Tensor w = where(near, constant(1, y), y);
  const Tensor slope = where(near, series * y, (cos(w) - sin(w) / w) / w);
  return functional::cast(slope * constant(std::numbers::pi, y), x.dtype());
}

}  // namespace

Tensor asinh(const Tensor& x) {
  const Tensor f = floating(x);
  const Tensor result = outside_tape([&] {
    return odd(f, [](const Tensor& y) {
      const Tensor one = constant(1, y);
      const Tensor exact = log1p(y + y * y / (one + sqrt(y * y + one)));
      return where(gt(y, constant(1e8, y)), log_doubled(y), exact);
    });
  });
  return with_gradient("asinh", {f}, result, {f}, false, [](const Tensor& g, Saved saved) {
    return Tensors{g * rsqrt(saved[0] * saved[0] + constant(1, g))};
  });
}

Tensor acosh(const Tensor& x) {
  const Tensor f = floating(x);
  const Tensor result = outside_tape([&] {
    const Tensor w = functional::wide(f);
    const Tensor above = w - constant(1, w);
    const Tensor exact = log1p(above + sqrt(above * above + above * constant(2, w)));
    return functional::cast(where(gt(w, constant(1e8, w)), log_doubled(w), exact), f.dtype());
  });
  return with_gradient("acosh", {f}, result, {f}, false, [](const Tensor& g, Saved saved) {
    return Tensors{g * rsqrt(saved[0] * saved[0] - constant(1, g))};
  });
}

Tensor atanh(const Tensor& x) {
  const Tensor f = floating(x);
  const Tensor result = outside_tape([&] {
    return odd(f, [](const Tensor& y) { return log1p(y * constant(2, y) / (constant(1, y) - y)) * constant(0.5, y); });
  });
  return with_gradient("atanh", {f}, result, {f}, false, [](const Tensor& g, Saved saved) {
    return Tensors{g / (constant(1, g) - saved[0] * saved[0])};
  });
}

Tensor sinc(const Tensor& x) {
  const Tensor f = floating(x);
  const Tensor result = outside_tape([&] {
    const Tensor at_zero = eq(f, constant(0, f));
    const Tensor angle = where(at_zero, constant(1, f), f * constant(std::numbers::pi, f));
    return where(at_zero, constant(1, f), sin(angle) / angle);
  });
  return with_gradient("sinc", {f}, result, {f}, false,
                       [](const Tensor& g, Saved saved) { return Tensors{g * sinc_slope(saved[0])}; });
}

Tensor hypot(const Tensor& x, const Tensor& y) {
  const Promoted both = functional::promoted_floating(x, y);
  const Tensor result = outside_tape([&] {
    const Tensor a = abs(both.x);
    const Tensor b = abs(both.y);
    const Tensor large = maximum(a, b);
    const Tensor ratio = minimum(a, b) / large;
    const Tensor scaled = large * sqrt(constant(1, ratio) + ratio * ratio);
    // The ratio is NaN for two zeros or two infinities.
    const Tensor plain = logical_or(eq(large, constant(0, large)), isinf(large));
    return where(plain, large, scaled);
  });
  return with_gradient("hypot", {both.x, both.y}, result, {both.x, both.y}, true, [](const Tensor& g, Saved saved) {
    const Tensor zero = eq(saved[2], constant(0, g));
    const Tensor scale = where(zero, constant(0, g), g / where(zero, constant(1, g), saved[2]));
    return Tensors{scale * saved[0], scale * saved[1]};
  });
}

namespace {

// log(exp(x) + exp(y)) in the base whose natural logarithm is `base_log`.
Tensor log_sum(const char* name, const Tensor& x, const Tensor& y, double base_log) {
  const Promoted both = functional::promoted_floating(x, y);
  const Tensor result = outside_tape([&] {
    const Tensor a = functional::wide(both.x);
    const Tensor b = functional::wide(both.y);
    const Tensor larger = maximum(a, b);
    // Equal infinities have no difference.
    const Tensor distance = where(eq(a, b), constant(0, a), abs(a - b));
    const Tensor added = log1p(exp(distance * constant(-base_log, a))) * constant(1 / base_log, a);
    return functional::cast(larger + added, both.dtype());
  });
  return with_gradient(name, {both.x, both.y}, result, {both.x, both.y}, false,
                       [base_log](const Tensor& g, Saved saved) {
                         const Tensor same = eq(saved[0], saved[1]);
                         const Tensor difference = where(same, constant(0, g), saved[0] - saved[1]);
                         const Tensor share = sigmoid(difference * constant(base_log, g));
                         return Tensors{g * share, g * (constant(1, g) - share)};
                       });
}

}  // namespace

Tensor logaddexp(const Tensor& x, const Tensor& y) { return log_sum("logaddexp", x, y, 1); }
Tensor logaddexp2(const Tensor& x, const Tensor& y) { return log_sum("logaddexp2", x, y, std::numbers::ln2); }

namespace {

Tensor x_log_y(const functional::Operand& x, const functional::Operand& y) {
  const Promoted both = functional::promoted_floating(x, y);
  const Tensor result = outside_tape([&] {
    const Tensor zero = logical_and(eq(both.x, constant(0, both.x)), logical_not(isnan(both.y)));
    return where(zero, constant(0, both.x), both.x * log(both.y));
  });
  return with_gradient("xlogy", {both.x, both.y}, result, {both.x, both.y}, false, [](const Tensor& g, Saved saved) {
    const Tensor zero = constant(0, g);
    const Tensor corner = logical_and(eq(saved[0], zero), le(saved[1], zero));
    return Tensors{g * where(corner, zero, log(where(corner, constant(1, g), saved[1]))), g * (saved[0] / saved[1])};
  });
}

}  // namespace

Tensor xlogy(const Tensor& x, const Tensor& y) { return x_log_y(x, y); }
Tensor xlogy(const Tensor& x, Scalar y) { return x_log_y(x, y); }
Tensor xlogy(Scalar x, const Tensor& y) { return x_log_y(x, y); }

namespace {

struct Bounds {
  Tensor min;
  Tensor max;
};

Tensor limited(const Tensor& x, const Bounds& bounds) {
  Tensor result = x;
  if (bounds.min.defined()) result = maximum(result, bounds.min);
  if (bounds.max.defined()) result = minimum(result, bounds.max);
  return result;
}

// The bounds belong to the inside: there the gradient passes (unlike maximum's, which equal elements share).
Tensor inside(const Tensor& x, const Bounds& bounds) {
  Tensor within;
  if (bounds.min.defined()) within = ge(x, bounds.min);
  if (bounds.max.defined()) within = within.defined() ? logical_and(within, le(x, bounds.max)) : le(x, bounds.max);
  return within;
}

void require_bound(bool given) {
  if (!given) throw ValueError("clamp: neither min nor max is given");
}

}  // namespace

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  require_bound(min || max);
  DType dtype = x.dtype();
  for (const auto& bound : {min, max}) {
    if (bound) dtype = promote(dtype, *bound);
  }
  const Tensor value = functional::cast(x, dtype);
  const auto bound = [&](const std::optional<Scalar>& number) {
    return number ? functional::held_number("clamp", *number, dtype, x.device()) : Tensor();
  };
  const Bounds bounds{bound(min), bound(max)};
  const Tensor result = outside_tape([&] { return limited(value, bounds); });
  return with_gradient("clamp", {value}, result, {value}, false, [bounds](const Tensor& g, Saved saved) {
    return Tensors{where(inside(saved[0], bounds), g, constant(0, g))};
  });
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  require_bound(min.defined() || max.defined());
  std::vector<functional::Operand> operands{x};
  if (min.defined()) operands.emplace_back(min);
  if (max.defined()) operands.emplace_back(max);
  const DType dtype = functional::result_type(operands);
  const auto bound = [&](const Tensor& t) { return t.defined() ? functional::cast(t, dtype) : t; };
  const Tensor value = functional::cast(x, dtype);
  const Bounds bounds{bound(min), bound(max)};
  const Tensor result = outside_tape([&] { return limited(value, bounds); });
  Tensors inputs{value};
  if (min.defined()) inputs.push_back(bounds.min);
  if (max.defined()) inputs.push_back(bounds.max);
  const bool has_min = min.defined();
  const bool has_max = max.defined();
  return with_gradient("clamp", inputs, result, inputs, false, [has_min, has_max](const Tensor& g, Saved saved) {
    const Tensor zero = constant(0, g);
    const Tensor& value = saved[0];
    const Bounds bounds{has_min ? saved[1] : Tensor(), has_max ? saved[has_min ? 2 : 1] : Tensor()};
    Tensors gradients{where(inside(value, bounds), g, zero)};
    const Tensor crossed = has_min && has_max ? lt(bounds.max, bounds.min) : Tensor();
    if (has_min) {
      const Tensor below = lt(value, bounds.min);
      gradients.push_back(where(has_max ? logical_and(below, logical_not(crossed)) : below, g, zero));
    }
    if (has_max) {
      const Tensor above = gt(value, bounds.max);
      gradients.push_back(where(has_min ? logical_or(above, crossed) : above, g, zero));
    }
    return gradients;
  });
}

Tensor clamp_min(const Tensor& x, Scalar min) { return clamp(x, min, std::nullopt); }
Tensor clamp_max(const Tensor& x, Scalar max) { return clamp(x, std::nullopt, max); }

}  // namespace russet
