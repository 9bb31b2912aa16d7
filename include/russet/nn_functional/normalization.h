#pragma once
// Normalisations: (x - mean) / sqrt(variance + eps) over some axes, then an affine map. Results have x's shape and
// type; statistics are computed in float32 or better. Weights and biases may be undefined.
#include <russet/tensor.h>
#include <optional>

namespace russet {

struct BatchNormOptions {
  /// Statistics of the batch, which also move the running ones; else the running ones are used.
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};
/// Over all axes but the channels' (1). x: [n, c, ...]; the others: [c]. Updates running_mean and running_var (with
/// the unbiased variance) in place when training; they may be undefined then. Throws ValueError when training on one
/// value a channel.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, const BatchNormOptions& options = {});

/// Over the last axes, whose sizes are `normalized_shape`, the shape of weight and bias.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
/// Over groups of channels and all axes behind. x: [n, c, ...]; weight and bias: [c].
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

struct InstanceNormOptions {
  bool use_input_stats = true;
  double momentum = 0.1;
  double eps = 1e-5;
};
/// Over the axes behind the channels, for each sample. Running statistics, if defined, move towards the batch's mean.
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, const InstanceNormOptions& options = {});
/// x / sqrt(mean(x^2) + eps) * weight over the last axes. eps: the smallest step of x's type at 1 if not given.
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});
/// x / max(norm(x), eps) along an axis.
Tensor normalize(const Tensor& x, double p = 2, std::int64_t axis = 1, double eps = 1e-12);

}  // namespace russet
