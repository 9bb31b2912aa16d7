// Convolutions. One axis is two with a height of 1.
#include <russet/functional/nn_convolution.h>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::autocast;
using functional::batched;
using functional::unbatched;
using ops::Op;
using ops::Window;

std::array<std::int32_t, 2> pair(Size2 sizes) {
  return {static_cast<std::int32_t>(sizes.height), static_cast<std::int32_t>(sizes.width)};
}

Size2 kernel_of(const Tensor& weight) { return {weight.size(-2), weight.size(-1)}; }

void require(const char* function, const char* what, Size2 sizes, std::int64_t least) {
  if (sizes.height >= least && sizes.width >= least) return;
  throw ValueError(
      fmt::format("{}: the {} is at least {}, not {} x {}", function, what, least, sizes.height, sizes.width));
}

void set_padding(const char* function, Window& window, const ConvPadding& padding, Size2 kernel,
                 const Conv2dOptions& options) {
  if (!padding.is_same()) {
    require(function, "padding", padding.sizes(), 0);
    window.padding = window.padding_after = pair(padding.sizes());
    return;
  }
  if (options.stride != Size2(1)) throw ValueError(fmt::format("{}: padding \"same\" takes a stride of 1", function));
  const Size2 total{options.dilation.height * (kernel.height - 1), options.dilation.width * (kernel.width - 1)};
  window.padding = pair({total.height / 2, total.width / 2});
  window.padding_after = pair({total.height - total.height / 2, total.width - total.width / 2});
}

Window window_of(const char* function, Size2 stride, Size2 dilation, std::int64_t groups) {
  require(function, "stride", stride, 1);
  require(function, "dilation", dilation, 1);
  if (groups < 1) throw ValueError(fmt::format("{}: groups is at least 1, not {}", function, groups));
  Window window;
  window.stride = pair(stride);
  window.dilation = pair(dilation);
  window.groups = static_cast<std::int32_t>(groups);
  return window;
}

Tensor with_bias(const char* function, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  const std::int64_t channels = y.size(-3);
  if (bias.dim() != 1 || bias.size(0) != channels) {
    throw ShapeError(
        fmt::format("{}: the bias's shape is {} where [{}] is needed", function, to_string(bias.sizes()), channels));
  }
  return y + autocast(ops::Autocast::lower, bias).reshape({channels, 1, 1});
}

void require_weight(const char* function, const Tensor& weight, int rank) {
  if (weight.dim() == rank) return;
  throw ShapeError(fmt::format("{}: the weight has {} dimensions, not {}", function, rank, to_string(weight.sizes())));
}

Tensor convolved(const char* function, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Conv2dOptions& options) {
  graph::NodeInfo given;
  Window window = window_of(function, options.stride, options.dilation, options.groups);
  set_padding(function, window, options.padding, kernel_of(weight), options);
  given.attributes = window;
  const Tensor y =
      autograd::apply(Op::convolution, {autocast(Op::convolution, x), autocast(Op::convolution, weight)}, given);
  return with_bias(function, y, bias);
}

std::int64_t transposed_size(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                             std::int64_t dilation, std::int64_t extra) {
  return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1;
}

Tensor transposed(const char* function, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const ConvTranspose2dOptions& options) {
  const Size2 extra = options.output_padding;
  Window window = window_of(function, options.stride, options.dilation, options.groups);
  require(function, "padding", options.padding, 0);
  require(function, "output padding", extra, 0);
  if (extra.height >= std::max(options.stride.height, options.dilation.height) ||
      extra.width >= std::max(options.stride.width, options.dilation.width)) {
    throw ValueError(fmt::format("{}: the output padding is smaller than the stride or the dilation", function));
  }
  if (x.size(1) != weight.size(0)) {
    throw ShapeError(fmt::format("{}: the input {} has {} channels, but the weight {} takes {}", function,
                                 to_string(x.sizes()), x.size(1), to_string(weight.sizes()), weight.size(0)));
  }
  window.padding = window.padding_after = pair(options.padding);
  const Size2 kernel = kernel_of(weight);
  graph::NodeInfo given;
  given.attributes = window;
  given.shape = {x.size(0), weight.size(1) * options.groups,
                 transposed_size(x.size(2), kernel.height, options.stride.height, options.padding.height,
                                 options.dilation.height, extra.height),
                 transposed_size(x.size(3), kernel.width, options.stride.width, options.padding.width,
                                 options.dilation.width, extra.width)};
  if (given.shape[2] < 1 || given.shape[3] < 1) {
    throw ShapeError(fmt::format("{}: the output's size would be {}", function, to_string(given.shape)));
  }
  given.dtype = autocast(Op::convolution_input, x).dtype();
  const Tensor y = autograd::apply(
      Op::convolution_input, {autocast(Op::convolution_input, x), autocast(Op::convolution_input, weight)}, given);
  return with_bias(function, y, bias);
}

ConvPadding beside(const ConvPadding& padding) {
  return padding.is_same() ? padding : ConvPadding(0, padding.sizes().width);
}

}  // namespace

ConvPadding::ConvPadding(std::string_view name) : same_(name == "same") {
  if (!same_ && name != "valid") {
    throw ValueError(fmt::format("padding is a number, \"same\" or \"valid\", not \"{}\"", name));
  }
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  require_weight("conv1d", weight, 3);
  const Tensor flat = batched("conv1d", x, 3).unsqueeze(2);
  const Tensor y = convolved("conv1d", flat, weight.unsqueeze(2), bias,
                             {{1, options.stride}, beside(options.padding), {1, options.dilation}, options.groups});
  return unbatched(y.squeeze(2), x, 3);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  require_weight("conv2d", weight, 4);
  return unbatched(convolved("conv2d", batched("conv2d", x, 4), weight, bias, options), x, 4);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  require_weight("conv_transpose1d", weight, 3);
  const Tensor flat = batched("conv_transpose1d", x, 3).unsqueeze(2);
  const Tensor y = transposed(
      "conv_transpose1d", flat, weight.unsqueeze(2), bias,
      {{1, options.stride}, {0, options.padding}, {0, options.output_padding}, options.groups, {1, options.dilation}});
  return unbatched(y.squeeze(2), x, 3);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  require_weight("conv_transpose2d", weight, 4);
  return unbatched(transposed("conv_transpose2d", batched("conv_transpose2d", x, 4), weight, bias, options), x, 4);
}

}  // namespace russet
