// Normalisations. Batch and layer norm own their gradient: with h = (x - mean) / deviation and g the gradient of h,
// that of x is (g - mean(g) - h * mean(g * h)) / deviation. Saved statistics serve a gradient; a gradient that is
// itself differentiated computes them again from x, on the tape.
#include <russet/autograd.h>
#include <russet/functional/nn_normalization.h>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::cast;
using functional::constant;
using functional::count_of;
using functional::outside_tape;
using functional::wide;

struct Moments {
  Tensor mean;
  Tensor variance;
};

Tensor mean_over(const Tensor& x, std::uint32_t axes) {
  const double share = 1.0 / static_cast<double>(count_of(x, axes));
  return functional::reduced(ops::Op::sum, x, axes, true) * constant(share, x);
}

Moments moments(const Tensor& x, std::uint32_t axes) {
  const double share = 1.0 / static_cast<double>(count_of(x, axes));
  return {mean_over(x, axes), functional::reduced(ops::Op::squared_deviations, x, axes, true) * constant(share, x)};
}

Tensor reciprocal_deviation(const Tensor& variance, double eps) { return rsqrt(variance + eps); }

Tensor affine(const Tensor& h, const Tensor& weight, const Tensor& bias, const Shape& sizes) {
  Tensor y = h;
  if (weight.defined()) y = y * wide(weight).reshape(sizes);
  if (bias.defined()) y = y + wide(bias).reshape(sizes);
  return y;
}

std::vector<Tensor> defined(std::initializer_list<Tensor> tensors) {
  std::vector<Tensor> list;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) list.push_back(tensor);
  }
  return list;
}

// What the gradient of a normalisation followed by an affine map needs to know.
struct Normalisation {
  std::uint32_t axes;     // over which statistics are taken
  std::uint32_t shared;   // over which one weight is shared
  Shape affine_shape;     // weight and bias as they broadcast against x
  Shape parameter_shape;  // weight and bias as they are
  double eps;
  bool has_weight;
  bool has_bias;
};

// saved: x, weight (if any), mean, reciprocal deviation.
std::vector<Tensor> normalised_gradient(const Normalisation& n, const Tensor& gradient, std::span<const Tensor> saved) {
  const Tensor g = wide(gradient);
  const Tensor x = wide(saved[0]);
  Tensor mean = saved[saved.size() - 2];
  Tensor scale = saved[saved.size() - 1];
  if (is_grad_enabled()) {
    const Moments fresh = moments(x, n.axes);
    mean = fresh.mean;
    scale = reciprocal_deviation(fresh.variance, n.eps);
  }
  const Tensor h = (x - mean) * scale;
  const auto over_shared = [&](const Tensor& t) { return functional::reduced(ops::Op::sum, t, n.shared, true); };
  std::vector<Tensor> gradients(1);
  Tensor of_weight;
  if (n.has_weight) gradients.push_back(of_weight = over_shared(g * h));
  if (n.has_bias) gradients.push_back(over_shared(g));
  const Tensor weight = n.has_weight ? wide(saved[1]).reshape(n.affine_shape) : Tensor();
  const double share = 1.0 / static_cast<double>(count_of(x, n.axes));
  if (n.axes == n.shared) {  // batch norm: the sums of the weight's and the bias's gradient serve again
    const Tensor sum_g = n.has_bias ? gradients.back() : over_shared(g);
    const Tensor sum_gh = n.has_weight ? of_weight : over_shared(g * h);
    const Tensor factor = n.has_weight ? scale * weight : scale;
    gradients[0] = (g - sum_g * constant(share, x) - h * (sum_gh * constant(share, x))) * factor;
  } else {
    const Tensor gw = n.has_weight ? g * weight : g;
    gradients[0] = (gw - mean_over(gw, n.axes) - h * mean_over(gw * h, n.axes)) * scale;
  }
  for (std::size_t i = 1; i < gradients.size(); ++i) gradients[i] = gradients[i].reshape(n.parameter_shape);
  return gradients;
}

Tensor normalised(const char* name, const Tensor& x, const Moments& found, const Tensor& weight, const Tensor& bias,
                  const Normalisation& n) {
  Tensor scale;
  const Tensor result = outside_tape([&] {
    scale = reciprocal_deviation(found.variance, n.eps);
    return cast(affine((wide(x) - found.mean) * scale, weight, bias, n.affine_shape), x.dtype());
  });
  return autograd::with_gradient(
      name, defined({x, weight, bias}), result, defined({x, weight, found.mean, scale}), false,
      [n](const Tensor& g, std::span<const Tensor> saved) { return normalised_gradient(n, g, saved); });
}

void require_vector(const char* function, const char* what, const Tensor& x, std::int64_t size) {
  if (!x.defined() || (x.dim() == 1 && x.size(0) == size)) return;
  throw ShapeError(
      fmt::format("{}: {}'s shape is {} where [{}] is needed", function, what, to_string(x.sizes()), size));
}

// All axes but the channels'.
std::uint32_t all_but_channels(const Tensor& x) { return ((1U << x.dim()) - 1U) & ~2U; }

Shape channel_shape(const Tensor& x) {
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[1] = x.size(1);
  return sizes;
}

void require_channels(const char* function, const Tensor& x) {
  functional::require_floating(function, x);
  if (x.dim() >= 2) return;
  throw ShapeError(fmt::format("{}: takes [n, channels, ...], not {}", function, to_string(x.sizes())));
}

// running = (1 - momentum) * running + momentum * value.
void move_towards(const Tensor& running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  const Tensor old = wide(running);
  running.copy_(old * (1 - momentum) + value.reshape(running.sizes()) * momentum);
}

void update_running(const Tensor& running_mean, const Tensor& running_var, const Moments& found, std::int64_t count,
                    double momentum) {
  const NoGrad guard;
  const auto n = static_cast<double>(count);
  move_towards(running_mean, found.mean, momentum);
  move_towards(running_var, found.variance * constant(n / (n - 1), found.variance), momentum);
}

Tensor with_running_statistics(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                               const Tensor& weight, const Tensor& bias, double eps) {
  const Shape sizes = channel_shape(x);
  Tensor scale = reciprocal_deviation(wide(running_var), eps);
  if (weight.defined()) scale = scale * wide(weight);
  Tensor shift = -(wide(running_mean) * scale);
  if (bias.defined()) shift = shift + wide(bias);
  return cast(wide(x) * scale.reshape(sizes) + shift.reshape(sizes), x.dtype());
}

std::uint32_t last_axes(const char* function, const Tensor& x, const Shape& sizes) {
  const int lead = x.dim() - sizes.rank();
  bool fits = lead >= 0 && sizes.rank() > 0;
  for (int axis = 0; fits && axis < sizes.rank(); ++axis) fits = x.sizes()[lead + axis] == sizes[axis];
  if (fits) return ((1U << sizes.rank()) - 1U) << lead;
  throw ShapeError(
      fmt::format("{}: the last dimensions of {} are not {}", function, to_string(x.sizes()), to_string(sizes)));
}

void require_same_shape(const char* function, const char* what, const Tensor& x, const Shape& sizes) {
  if (!x.defined() || x.sizes() == sizes) return;
  throw ShapeError(
      fmt::format("{}: {}'s shape is {} where {} is needed", function, what, to_string(x.sizes()), to_string(sizes)));
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormOptions& options) {
  require_channels("batch_norm", x);
  const std::int64_t channels = x.size(1);
  require_vector("batch_norm", "running_mean", running_mean, channels);
  require_vector("batch_norm", "running_var", running_var, channels);
  require_vector("batch_norm", "weight", weight, channels);
  require_vector("batch_norm", "bias", bias, channels);
  if (!options.training) {
    if (!running_mean.defined() || !running_var.defined()) {
      throw ValueError("batch_norm: without training it takes running_mean and running_var");
    }
    return with_running_statistics(x, running_mean, running_var, weight, bias, options.eps);
  }
  const std::uint32_t axes = all_but_channels(x);
  const std::int64_t count = count_of(x, axes);
  if (count <= 1) {
    throw ValueError(
        fmt::format("batch_norm: training takes more than one value a channel, not {}", to_string(x.sizes())));
  }
  const Moments found = outside_tape([&] { return moments(wide(x), axes); });
  update_running(running_mean, running_var, found, count, options.momentum);
  return normalised("batch_norm", x, found, weight, bias,
                    {axes, axes, channel_shape(x), {channels}, options.eps, weight.defined(), bias.defined()});
}

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  functional::require_floating("layer_norm", x);
  const std::uint32_t axes = last_axes("layer_norm", x, normalized_shape);
  require_same_shape("layer_norm", "weight", weight, normalized_shape);
  require_same_shape("layer_norm", "bias", bias, normalized_shape);
  const std::uint32_t outer = ((1U << x.dim()) - 1U) & ~axes;
  const Moments found = outside_tape([&] { return moments(wide(x), axes); });
  return normalised("layer_norm", x, found, weight, bias,
                    {axes, outer, normalized_shape, normalized_shape, eps, weight.defined(), bias.defined()});
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  require_channels("group_norm", x);
  const std::int64_t channels = x.size(1);
  if (groups < 1 || channels % groups != 0) {
    throw ValueError(fmt::format("group_norm: {} channels do not split into {} groups", channels, groups));
  }
  require_vector("group_norm", "weight", weight, channels);
  require_vector("group_norm", "bias", bias, channels);
  if (x.numel() == 0) return x.clone();
  const Tensor rows = wide(x).reshape({x.size(0) * groups, -1});
  const Tensor h = layer_norm(rows, {rows.size(1)}, {}, {}, eps).reshape(x.sizes());
  return cast(affine(h, weight, bias, channel_shape(x)), x.dtype());
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, const InstanceNormOptions& options) {
  require_channels("instance_norm", x);
  if (!options.use_input_stats) {
    return batch_norm(x, running_mean, running_var, weight, bias, {false, options.momentum, options.eps});
  }
  const std::int64_t channels = x.size(1);
  require_vector("instance_norm", "running_mean", running_mean, channels);
  require_vector("instance_norm", "running_var", running_var, channels);
  require_vector("instance_norm", "weight", weight, channels);
  require_vector("instance_norm", "bias", bias, channels);
  const std::int64_t count = x.numel() / std::max<std::int64_t>(x.size(0) * channels, 1);
  if (count <= 1) {
    throw ValueError(
        fmt::format("instance_norm: takes more than one value a channel and sample, not {}", to_string(x.sizes())));
  }
  if (running_mean.defined() || running_var.defined()) {
    const NoGrad guard;
    const Moments found = moments(wide(x).reshape({x.size(0), channels, count}), 4U);
    update_running(running_mean, running_var, {mean_over(found.mean, 1U), mean_over(found.variance, 1U)}, count,
                   options.momentum);
  }
  return group_norm(x, channels, weight, bias, options.eps);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  functional::require_floating("rms_norm", x);
  const std::uint32_t axes = last_axes("rms_norm", x, normalized_shape);
  require_same_shape("rms_norm", "weight", weight, normalized_shape);
  constexpr double steps[] = {0x1p-10, 0x1p-7, 0x1p-23, 0x1p-52};  // float16, bfloat16, float32, float64
  const double step = steps[static_cast<int>(x.dtype()) - static_cast<int>(DType::float16)];
  const Tensor v = wide(x);
  const Tensor h = v * reciprocal_deviation(mean_over(v * v, axes), eps.value_or(step));
  return cast(affine(h, weight, {}, normalized_shape), x.dtype());
}

Tensor normalize(const Tensor& x, double p, std::int64_t axis, double eps) {
  return x / clamp_min(norm(x, p, axis, true), eps);
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha, double beta, double k) {
  functional::require_floating("local_response_norm", x);
  if (x.dim() < 3) {
    throw ShapeError(
        fmt::format("local_response_norm: takes [n, c, ...] with at least 3 dimensions, not {}", to_string(x.sizes())));
  }
  if (size < 1) throw ValueError(fmt::format("local_response_norm: size is {}", size));
  const Tensor w = wide(x);
  std::vector<std::int64_t> margins(2 * static_cast<std::size_t>(x.dim() - 1), 0);  // the channels' come last
  margins[margins.size() - 2] = size / 2;
  margins[margins.size() - 1] = (size - 1) / 2;
  const Tensor neighbours = sum(pad(w * w, margins).unfold(1, size, 1), -1);
  const Tensor scale = neighbours * constant(alpha / static_cast<double>(size), w) + constant(k, w);
  return cast(w / pow(scale, constant(beta, w)), x.dtype());
}

}  // namespace russet
