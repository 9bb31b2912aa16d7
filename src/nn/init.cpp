// Initial values.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn/init.h>

#include <array>
#include <cmath>
#include <numbers>

namespace russet::nn::init {
namespace {

double fan_of(const Tensor& x, Fan mode) {
  const auto [in, out] = fans_of(x);
  return static_cast<double>(std::max<std::int64_t>(mode == Fan::in ? in : out, 1));
}

double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

Tensor polynomial(const Tensor& w, const std::array<double, 9>& coefficients) {
  Tensor value = w * coefficients[0] + coefficients[1];
  for (std::size_t i = 2; i < coefficients.size(); ++i) value = value * w + coefficients[i];
  return value;
}

/// The inverse of erf in float32. M. Giles, Approximating the erfinv function, GPU Computing Gems 2, 2011.
Tensor inverse_erf(const Tensor& x) {
  constexpr std::array<double, 9> central = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                             -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                             -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array<double, 9> tail = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                          -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const Tensor w = -log((1 - x) * (1 + x));
  return x * where(lt(w, 5), polynomial(w - 2.5, central), polynomial(sqrt(w) - 3, tail));
}

}  // namespace

double gain_of(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::conv:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
  }
  throw ValueError("gain_of: unknown nonlinearity");
}

std::pair<std::int64_t, std::int64_t> fans_of(const Tensor& weight) {
  if (weight.dim() < 2) {
    throw ShapeError(
        fmt::format("fans_of: takes a weight of two dimensions or more, not {}", to_string(weight.sizes())));
  }
  std::int64_t area = 1;
  for (int axis = 2; axis < weight.dim(); ++axis) area *= weight.size(axis);
  return {weight.size(1) * area, weight.size(0) * area};
}

const Tensor& constant_(const Tensor& x, double value) {
  const NoGrad guard;
  return x.fill_(value);
}

const Tensor& zeros_(const Tensor& x) { return constant_(x, 0); }
const Tensor& ones_(const Tensor& x) { return constant_(x, 1); }

const Tensor& eye_(const Tensor& x) {
  if (x.dim() != 2) throw ShapeError(fmt::format("eye_: takes a matrix, not {}", to_string(x.sizes())));
  const NoGrad guard;
  return x.copy_(eye(x.size(0), x.size(1), {x.dtype(), x.device()}));
}

const Tensor& uniform_(const Tensor& x, double low, double high, Generator* generator) {
  const NoGrad guard;
  return x.uniform_(low, high, generator);
}

const Tensor& normal_(const Tensor& x, double mean, double std, Generator* generator) {
  const NoGrad guard;
  return x.normal_(mean, std, generator);
}

const Tensor& trunc_normal_(const Tensor& x, double mean, double std, double low, double high, Generator* generator) {
  if (!(low < high)) throw ValueError(fmt::format("trunc_normal_: there is no number in [{}, {}]", low, high));
  const NoGrad guard;
  const double from = cdf((low - mean) / std);
  const double to = cdf((high - mean) / std);
  if (from == 0 && to == 1) return x.normal_(mean, std, generator);
  const Tensor u = rand(x.sizes(), {DType::float32, x.device()}, generator);
  // erf's argument runs from 2 from - 1 to 2 to - 1; the ends would be infinite.
  const Tensor inside = clamp(u * (2 * (to - from)) + (2 * from - 1), -1 + 1e-6, 1 - 1e-6);
  return x.copy_(clamp(inverse_erf(inside) * (std * std::numbers::sqrt2) + mean, low, high));
}

const Tensor& xavier_uniform_(const Tensor& x, double gain, Generator* generator) {
  const auto [in, out] = fans_of(x);
  const double bound = gain * std::sqrt(6 / static_cast<double>(in + out));
  return init::uniform_(x, -bound, bound, generator);
}

const Tensor& xavier_normal_(const Tensor& x, double gain, Generator* generator) {
  const auto [in, out] = fans_of(x);
  return init::normal_(x, 0, gain * std::sqrt(2 / static_cast<double>(in + out)), generator);
}

const Tensor& kaiming_uniform_(const Tensor& x, const KaimingOptions& options) {
  const double bound = gain_of(options.nonlinearity, options.a) * std::sqrt(3 / fan_of(x, options.mode));
  return init::uniform_(x, -bound, bound, options.generator);
}

const Tensor& kaiming_normal_(const Tensor& x, const KaimingOptions& options) {
  const double std = gain_of(options.nonlinearity, options.a) / std::sqrt(fan_of(x, options.mode));
  return init::normal_(x, 0, std, options.generator);
}

}  // namespace russet::nn::init
