#pragma once
// Activation functions, element by element unless said otherwise.
#include <russet/tensor.h>
#include <cstdint>
#include <string_view>

namespace russet {

/// max(x, 0); the gradient at 0 is 0.
Tensor relu(const Tensor& x);
/// min(max(x, 0), 6).
Tensor relu6(const Tensor& x);
/// x, or negative_slope * x below 0.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// leaky_relu with a learned slope: weight has one element or one for each channel (axis 1).
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x, or alpha * (exp(x) - 1) below 0.
Tensor elu(const Tensor& x, double alpha = 1);
/// elu with the two constants that keep mean 0 and variance 1.
Tensor selu(const Tensor& x);
/// x, or alpha * (exp(x / alpha) - 1) below 0.
Tensor celu(const Tensor& x, double alpha = 1);

enum class GeluApproximation : std::uint8_t { none, tanh };
/// x * P(X <= x) for a standard normal X; or its approximation by tanh.
Tensor gelu(const Tensor& x, GeluApproximation approximation = GeluApproximation::none);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// x * tanh(softplus(x)).
Tensor mish(const Tensor& x);
/// log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x / (1 + |x|).
Tensor softsign(const Tensor& x);
/// x - tanh(x).
Tensor tanhshrink(const Tensor& x);
/// x moved towards 0 by lambda, and 0 within [-lambda, lambda].
Tensor softshrink(const Tensor& x, double lambda = 0.5);
/// x, and 0 within [-lambda, lambda].
Tensor hardshrink(const Tensor& x, double lambda = 0.5);
/// x limited to [min, max]; the gradient at the limits is 0.
Tensor hardtanh(const Tensor& x, double min = -1, double max = 1);
/// min(max(x + 3, 0), 6) / 6.
Tensor hardsigmoid(const Tensor& x);
/// x * hardsigmoid(x).
Tensor hardswish(const Tensor& x);
/// log(sigmoid(x)).
Tensor logsigmoid(const Tensor& x);
/// x where it is above `threshold`, else `value`.
Tensor threshold(const Tensor& x, double threshold, double value);
/// The first half along `axis` times the sigmoid of the second. Throws ShapeError for an odd size.
Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// softmax(-x).
Tensor softmin(const Tensor& x, std::int64_t axis);

}  // namespace russet
