// Convolutions.
#include <fmt/format.h>
#include <russet/nn/convolution.h>

#include "new_parameters.h"

namespace russet::nn {
namespace {

void check(const char* name, std::int64_t in_channels, std::int64_t out_channels, Size3 kernel, std::int64_t groups) {
  if (groups < 1 || in_channels < 1 || out_channels < 1 || in_channels % groups != 0 || out_channels % groups != 0) {
    throw ValueError(fmt::format("{}: {} input and {} output channels do not split into {} groups", name, in_channels,
                                 out_channels, groups));
  }
  for (const std::int64_t size : {kernel.depth, kernel.height, kernel.width}) {
    if (size < 1) throw ValueError(fmt::format("{}: the kernel's sizes are at least 1, not {}", name, size));
  }
}

/// The output padding with which an axis of `size` elements becomes one of `output`.
std::int64_t padding_to(std::int64_t output, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding, std::int64_t dilation) {
  const std::int64_t least = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1;
  if (output >= least && output < least + stride) return output - least;
  throw ValueError(
      fmt::format("ConvTranspose: an output of {} where {} to {} are possible", output, least, least + stride - 1));
}

struct ConvolutionParameters {
  Tensor weight;
  Tensor bias;
};

/// A weight of these sizes, and a bias for each channel of the output: undefined where none is wanted.
ConvolutionParameters new_parameters(const Shape& weight, std::int64_t out_channels, bool with_bias) {
  const double bound = default_bound(numel(weight) / weight[0]);
  return {new_uniform(weight, bound), with_bias ? new_uniform({out_channels}, bound) : Tensor()};
}

}  // namespace

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel, const Conv1dOptions& options)
    : options_{options.stride, options.padding, options.dilation, options.groups} {
  check("Conv1d", in_channels, out_channels, {1, 1, kernel}, options.groups);
  const Shape sizes{out_channels, in_channels / options.groups, kernel};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight, bias, options_); }

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel, const Conv2dOptions& options)
    : options_{options.stride, options.padding, options.dilation, options.groups} {
  check("Conv2d", in_channels, out_channels, {1, kernel.height, kernel.width}, options.groups);
  const Shape sizes{out_channels, in_channels / options.groups, kernel.height, kernel.width};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias, options_); }

Conv3d::Conv3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel, const Conv3dOptions& options)
    : options_{options.stride, options.padding, options.dilation, options.groups} {
  check("Conv3d", in_channels, out_channels, kernel, options.groups);
  const Shape sizes{out_channels, in_channels / options.groups, kernel.depth, kernel.height, kernel.width};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv3d::forward(const Tensor& x) { return conv3d(x, weight, bias, options_); }

ConvTranspose1d::ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
                                 const ConvTranspose1dOptions& options)
    : options_{options.stride, options.padding, options.output_padding, options.groups, options.dilation} {
  check("ConvTranspose1d", in_channels, out_channels, {1, 1, kernel}, options.groups);
  const Shape sizes{in_channels, out_channels / options.groups, kernel};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose1d::forward(const Tensor& x) { return conv_transpose1d(x, weight, bias, options_); }

Tensor ConvTranspose1d::forward(const Tensor& x, std::int64_t output_size) {
  russet::ConvTranspose1dOptions options = options_;
  options.output_padding =
      padding_to(output_size, x.size(-1), weight.size(2), options.stride, options.padding, options.dilation);
  return conv_transpose1d(x, weight, bias, options);
}

Tensor ConvTranspose1d::operator()(const Tensor& x, std::int64_t output_size) {
  const Tensor inputs[] = {x};
  return call(inputs, [&](std::span<const Tensor> present) { return forward(present[0], output_size); });
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
                                 const ConvTranspose2dOptions& options)
    : options_{options.stride, options.padding, options.output_padding, options.groups, options.dilation} {
  check("ConvTranspose2d", in_channels, out_channels, {1, kernel.height, kernel.width}, options.groups);
  const Shape sizes{in_channels, out_channels / options.groups, kernel.height, kernel.width};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose2d::forward(const Tensor& x) { return conv_transpose2d(x, weight, bias, options_); }

Tensor ConvTranspose2d::forward(const Tensor& x, Size2 output_size) {
  russet::ConvTranspose2dOptions options = options_;
  options.output_padding = {padding_to(output_size.height, x.size(-2), weight.size(2), options.stride.height,
                                       options.padding.height, options.dilation.height),
                            padding_to(output_size.width, x.size(-1), weight.size(3), options.stride.width,
                                       options.padding.width, options.dilation.width)};
  return conv_transpose2d(x, weight, bias, options);
}

Tensor ConvTranspose2d::operator()(const Tensor& x, Size2 output_size) {
  const Tensor inputs[] = {x};
  return call(inputs, [&](std::span<const Tensor> present) { return forward(present[0], output_size); });
}

ConvTranspose3d::ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel,
                                 const ConvTranspose3dOptions& options)
    : options_{options.stride, options.padding, options.output_padding, options.groups, options.dilation} {
  check("ConvTranspose3d", in_channels, out_channels, kernel, options.groups);
  const Shape sizes{in_channels, out_channels / options.groups, kernel.depth, kernel.height, kernel.width};
  const ConvolutionParameters made = new_parameters(sizes, out_channels, options.bias);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose3d::forward(const Tensor& x) { return conv_transpose3d(x, weight, bias, options_); }

Tensor ConvTranspose3d::forward(const Tensor& x, Size3 output_size) {
  russet::ConvTranspose3dOptions options = options_;
  options.output_padding = {padding_to(output_size.depth, x.size(-3), weight.size(2), options.stride.depth,
                                       options.padding.depth, options.dilation.depth),
                            padding_to(output_size.height, x.size(-2), weight.size(3), options.stride.height,
                                       options.padding.height, options.dilation.height),
                            padding_to(output_size.width, x.size(-1), weight.size(4), options.stride.width,
                                       options.padding.width, options.dilation.width)};
  return conv_transpose3d(x, weight, bias, options);
}

Tensor ConvTranspose3d::operator()(const Tensor& x, Size3 output_size) {
  const Tensor inputs[] = {x};
  return call(inputs, [&](std::span<const Tensor> present) { return forward(present[0], output_size); });
}

}  // namespace russet::nn
