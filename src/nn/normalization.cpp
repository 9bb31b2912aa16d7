// Normalisations.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional/nn_normalization.h>
#include <russet/nn/normalization.h>

#include "new_parameters.h"

namespace russet::nn {

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options, const char* name, int least_rank,
                     int most_rank)
    : options_(options), name_(name), least_rank_(least_rank), most_rank_(most_rank) {
  if (channels < 1) throw ValueError(fmt::format("{}: {} channels", name, channels));
  weight = register_parameter("weight", options.affine ? new_ones({channels}) : Tensor());
  bias = register_parameter("bias", options.affine ? new_zeros({channels}) : Tensor());
  const bool track = options.track_running_stats;
  running_mean = register_buffer("running_mean", track ? new_zeros({channels}) : Tensor());
  running_var = register_buffer("running_var", track ? new_ones({channels}) : Tensor());
  const Tensor count = track ? zeros({}, {DType::int64, NewModules::options().device}) : Tensor();
  num_batches_tracked = register_buffer("num_batches_tracked", count);
}

Tensor BatchNorm::forward(const Tensor& x) {
  if (x.dim() < least_rank_ || x.dim() > most_rank_) {
    throw ShapeError(fmt::format("{}: takes {} dimensions{}, not {}", name_, least_rank_,
                                 most_rank_ > least_rank_ ? fmt::format(" or {}", most_rank_) : "",
                                 to_string(x.sizes())));
  }
  if (is_training() && num_batches_tracked.defined()) {
    const NoGrad guard;
    num_batches_tracked.add_(1);
  }
  const bool batch_statistics = is_training() || !running_mean.defined();
  return batch_norm(x, running_mean, running_var, weight, bias, {batch_statistics, options_.momentum, options_.eps});
}

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  if (shape_.empty()) throw ValueError("LayerNorm: takes one size or more");
  const bool affine = options.elementwise_affine;
  weight = register_parameter("weight", affine ? new_ones(shape_) : Tensor());
  bias = register_parameter("bias", affine && options.bias ? new_zeros(shape_) : Tensor());
}

Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options)
    : groups_(groups), eps_(options.eps) {
  if (groups < 1 || channels < 1 || channels % groups != 0) {
    throw ValueError(fmt::format("GroupNorm: {} channels do not split into {} groups", channels, groups));
  }
  weight = register_parameter("weight", options.affine ? new_ones({channels}) : Tensor());
  bias = register_parameter("bias", options.affine ? new_zeros({channels}) : Tensor());
}

Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, groups_, weight, bias, eps_); }

Tensor LocalResponseNorm::forward(const Tensor& x) {
  return local_response_norm(x, size_, options_.alpha, options_.beta, options_.k);
}

}  // namespace russet::nn
