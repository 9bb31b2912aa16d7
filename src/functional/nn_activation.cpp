// Activation functions.
#include <russet/functional/nn_activation.h>

#include <cmath>
#include <numbers>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::autocast;
using functional::chained;
using functional::constant;
using functional::smooth;

Tensor zero(const Tensor& like) { return constant(0, like); }

// positive * x above 0, negative * (exp(scale * x) - 1) below. The exponent never overflows: it is at most 0.
Tensor elu_of(const char* name, const Tensor& x, double positive, double negative, double scale) {
  return smooth(
      name, x,
      [=](const Tensor& v) { return where(v > zero(v), v * positive, expm1(minimum(v, zero(v)) * scale) * negative); },
      [=](const Tensor& g, const Tensor& v) {
        return g * where(v > zero(v), constant(positive, v), exp(minimum(v, zero(v)) * scale) * (negative * scale));
      });
}

Tensor normal_cdf(const Tensor& x) { return autograd::apply(ops::Op::ndtr, {x}); }
Tensor normal_density(const Tensor& x) { return autograd::apply(ops::Op::normal_density, {x}); }

Tensor gelu_slope(const Tensor& g, const Tensor& x) { return g * (normal_cdf(x) + x * normal_density(x)); }

constexpr double gelu_cubic = 0.044715;
constexpr double gelu_scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

Tensor gelu_tanh(const Tensor& x) { return tanh((x + x * x * x * constant(gelu_cubic, x)) * constant(gelu_scale, x)); }

Tensor gelu_tanh_slope(const Tensor& g, const Tensor& x) {
  const Tensor one = constant(1, x);
  const Tensor t = gelu_tanh(x);
  const Tensor inner = (one + x * x * constant(3 * gelu_cubic, x)) * constant(gelu_scale, x);
  return g * ((one + t) + x * (one - t * t) * inner) * constant(0.5, x);
}

// log(1 + exp(x)) without overflow.
Tensor log1pexp(const Tensor& x) { return maximum(x, zero(x)) + log1p(exp(-abs(x))); }

// g within the open interval, 0 outside.
Tensor within(const Tensor& g, const Tensor& x, double low, double high) {
  return where(logical_and(x > constant(low, x), x < constant(high, x)), g, zero(g));
}

Tensor softplus_of(const Tensor& x) { return softplus(x); }

}  // namespace

Tensor relu(const Tensor& x) {
  const Tensor result = functional::outside_tape([&] { return autograd::apply(ops::Op::maximum, {x, zero(x)}); });
  return autograd::with_gradient("relu", {x}, result, {}, true,
                                 [](const Tensor& g, std::span<const Tensor> saved) -> std::vector<Tensor> {
                                   const Tensor& y = saved[0];
                                   return {where(y <= zero(y), zero(g), g)};
                                 });
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0, 6); }

Tensor leaky_relu(const Tensor& x, double negative_slope) { return where(x > zero(x), x, x * negative_slope); }

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const std::int64_t channels = x.dim() > 1 ? x.size(1) : 1;
  if (weight.dim() > 1 || (weight.numel() != 1 && weight.numel() != channels)) {
    throw ShapeError(fmt::format("prelu: weight has one element or one for each of {} channels, not {}", channels,
                                 to_string(weight.sizes())));
  }
  Shape sizes = Shape::filled(x.dim(), 1);
  if (x.dim() > 1) sizes[1] = weight.numel();
  const Tensor low = autocast(ops::Autocast::lower, x);
  return where(low > zero(low), low, low * autocast(ops::Autocast::lower, weight).reshape(sizes));
}

Tensor elu(const Tensor& x, double alpha) { return elu_of("elu", x, 1, alpha, 1); }

// Klambauer et al., "Self-normalizing neural networks", 2017.
Tensor selu(const Tensor& x) {
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  return elu_of("selu", x, scale, alpha * scale, 1);
}

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw ValueError("celu: alpha is 0");
  return elu_of("celu", x, 1, alpha, 1 / alpha);
}

Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::none) {
    return smooth(
        "gelu", x, [](const Tensor& v) { return v * normal_cdf(v); }, gelu_slope);
  }
  const auto value = [](const Tensor& v) { return v * (gelu_tanh(v) + constant(1, v)) * constant(0.5, v); };
  return smooth("gelu", x, value, gelu_tanh_slope);
}

Tensor silu(const Tensor& x) {
  return smooth(
      "silu", x, [](const Tensor& v) { return v * sigmoid(v); },
      [](const Tensor& g, const Tensor& v) {
        const Tensor s = sigmoid(v);
        return g * (s * (constant(1, v) + v * (constant(1, v) - s)));
      });
}

Tensor mish(const Tensor& x) {
  return chained("mish", x, [](const Tensor& v) { return v * tanh(softplus_of(v)); });
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return smooth(
      "softplus", autocast(ops::Autocast::float32, x),
      [=](const Tensor& v) {
        const Tensor scaled = v * beta;
        return where(scaled > threshold, v, log1pexp(scaled) / beta);
      },
      [=](const Tensor& g, const Tensor& v) {
        const Tensor scaled = v * beta;
        return where(scaled > threshold, g, g * sigmoid(scaled));
      });
}

Tensor softsign(const Tensor& x) {
  return chained("softsign", x, [](const Tensor& v) { return v / (abs(v) + constant(1, v)); });
}

Tensor tanhshrink(const Tensor& x) {
  return chained("tanhshrink", x, [](const Tensor& v) { return v - tanh(v); });
}

Tensor softshrink(const Tensor& x, double lambda) {
  if (lambda < 0) throw ValueError(fmt::format("softshrink: lambda is negative: {}", lambda));
  return where(x > lambda, x - lambda, where(x < -lambda, x + lambda, zero(x)));
}

Tensor hardshrink(const Tensor& x, double lambda) { return where(logical_and(x >= -lambda, x <= lambda), zero(x), x); }

Tensor hardtanh(const Tensor& x, double min, double max) {
  if (min > max) throw ValueError(fmt::format("hardtanh: min is above max: {} > {}", min, max));
  return smooth(
      "hardtanh", x, [=](const Tensor& v) { return minimum(maximum(v, constant(min, v)), constant(max, v)); },
      [=](const Tensor& g, const Tensor& v) { return within(g, v, min, max); });
}

Tensor hardsigmoid(const Tensor& x) {
  return smooth(
      "hardsigmoid", x,
      [](const Tensor& v) {
        const Tensor shifted = maximum(v + constant(3, v), zero(v));
        return minimum(shifted, constant(6, v)) * constant(1.0 / 6, v);
      },
      [](const Tensor& g, const Tensor& v) { return within(g, v, -3, 3) * constant(1.0 / 6, g); });
}

Tensor hardswish(const Tensor& x) {
  return smooth(
      "hardswish", x,
      [](const Tensor& v) {
        const Tensor shifted = maximum(v + constant(3, v), zero(v));
        return v * minimum(shifted, constant(6, v)) * constant(1.0 / 6, v);
      },
      [](const Tensor& g, const Tensor& v) {
        const Tensor inner = g * (v * constant(1.0 / 3, v) + constant(0.5, v));
        return where(v <= constant(-3, v), zero(g), where(v < constant(3, v), inner, g));
      });
}

Tensor logsigmoid(const Tensor& x) {
  return smooth(
      "logsigmoid", x, [](const Tensor& v) { return minimum(v, zero(v)) - log1p(exp(-abs(v))); },
      [](const Tensor& g, const Tensor& v) { return g * sigmoid(-v); });
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  return where(x > threshold, x, functional::held_number("threshold", value, x.dtype(), x.device()));
}

Tensor glu(const Tensor& x, std::int64_t axis) {
  const int along = wrap_axis(axis, x.dim());
  const std::int64_t size = x.dim() == 0 ? 1 : x.size(along);
  if (size % 2 != 0)
    throw ShapeError(fmt::format("glu: dimension {} of {} has an odd size", axis, to_string(x.sizes())));
  return x.narrow(along, 0, size / 2) * sigmoid(x.narrow(along, size / 2, size / 2));
}

Tensor softmin(const Tensor& x, std::int64_t axis) { return softmax(-x, axis); }

}  // namespace russet
