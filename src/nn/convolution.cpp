// Convolutions.
#include <fmt/format.h>
#include <russet/nn/convolution.h>

#include "new_parameters.h"

namespace russet::nn {
namespace {

void check(const char* name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel, std::int64_t groups) {
  if (groups < 1 || in_channels < 1 || out_channels < 1 || in_channels % groups != 0 || out_channels % groups != 0) {
    throw ValueError(fmt::format("{}: {} input and {} output channels do not split into {} groups", name, in_channels,
                                 out_channels, groups));
  }
  if (kernel.height < 1 || kernel.width < 1) {
    throw ValueError(fmt::format("{}: a kernel of {} x {}", name, kernel.height, kernel.width));
  }
}

double bound_of(const Shape& sizes) { return default_bound(numel(sizes) / sizes[0]); }

}  // namespace

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel, const Conv1dOptions& options)
    : options_{options.stride, options.padding, options.dilation, options.groups} {
  check("Conv1d", in_channels, out_channels, kernel, options.groups);
  const Shape sizes{out_channels, in_channels / options.groups, kernel};
  weight = register_parameter("weight", new_uniform(sizes, bound_of(sizes)));
  bias = register_parameter("bias", options.bias ? new_uniform({out_channels}, bound_of(sizes)) : Tensor());
}

Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight, bias, options_); }

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel, const Conv2dOptions& options)
    : options_{options.stride, options.padding, options.dilation, options.groups} {
  check("Conv2d", in_channels, out_channels, kernel, options.groups);
  const Shape sizes{out_channels, in_channels / options.groups, kernel.height, kernel.width};
  weight = register_parameter("weight", new_uniform(sizes, bound_of(sizes)));
  bias = register_parameter("bias", options.bias ? new_uniform({out_channels}, bound_of(sizes)) : Tensor());
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias, options_); }

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
                                 const ConvTranspose2dOptions& options)
    : options_{options.stride, options.padding, options.output_padding, options.groups, options.dilation} {
  check("ConvTranspose2d", in_channels, out_channels, kernel, options.groups);
  const Shape sizes{in_channels, out_channels / options.groups, kernel.height, kernel.width};
  weight = register_parameter("weight", new_uniform(sizes, bound_of(sizes)));
  bias = register_parameter("bias", options.bias ? new_uniform({out_channels}, bound_of(sizes)) : Tensor());
}

Tensor ConvTranspose2d::forward(const Tensor& x) { return conv_transpose2d(x, weight, bias, options_); }

}  // namespace russet::nn
