// Convolutions. One axis is two with a height of 1. Of three, the depth's part of the windows is channels of a
// convolution of planes: so the primitives have two axes, and a sum over a window is one sum. The planes of all windows
// take as much memory as the input, times the kernel's depth over its stride.
#include <fmt/ranges.h>
#include <russet/functional/nn_convolution.h>

#include <algorithm>

#include "autograd/rules_detail.h"
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

void require(const char* function, const char* what, std::initializer_list<std::int64_t> sizes, std::int64_t least) {
  if (std::min(sizes) >= least) return;
  throw ValueError(fmt::format("{}: the {} is at least {}, not {}", function, what, least, fmt::join(sizes, " x ")));
}

/// Zeros before and after an axis.
struct Margins {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// Those that keep the axis's size at a stride of 1.
Margins same_margins(std::int64_t kernel, std::int64_t dilation) {
  const std::int64_t total = dilation * (kernel - 1);
  return {total / 2, total - total / 2};
}

void require_no_stride(const char* function, bool is_1) {
  if (!is_1) throw ValueError(fmt::format("{}: padding \"same\" takes a stride of 1", function));
}

void set_padding(const char* function, Window& window, Size2 kernel, const Conv2dOptions& options) {
  if (!options.padding.is_same()) {
    const Size2 padding = options.padding.sizes();
    require(function, "padding", {padding.height, padding.width}, 0);
    window.padding = window.padding_after = pair(padding);
    return;
  }
  require_no_stride(function, options.stride == Size2(1));
  const Margins rows = same_margins(kernel.height, options.dilation.height);
  const Margins columns = same_margins(kernel.width, options.dilation.width);
  window.padding = pair({rows.before, columns.before});
  window.padding_after = pair({rows.after, columns.after});
}

void require_groups(const char* function, std::int64_t groups) {
  if (groups < 1) throw ValueError(fmt::format("{}: groups is at least 1, not {}", function, groups));
}

Window window_of(const char* function, Size2 stride, Size2 dilation, std::int64_t groups) {
  require(function, "stride", {stride.height, stride.width}, 1);
  require(function, "dilation", {dilation.height, dilation.width}, 1);
  require_groups(function, groups);
  Window window;
  window.stride = pair(stride);
  window.dilation = pair(dilation);
  window.groups = static_cast<std::int32_t>(groups);
  return window;
}

/// y and the bias of each of its channels, axis 1.
Tensor with_bias(const char* function, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  const std::int64_t channels = y.size(1);
  if (bias.dim() != 1 || bias.size(0) != channels) {
    throw ShapeError(
        fmt::format("{}: the bias's shape is {} where [{}] is needed", function, to_string(bias.sizes()), channels));
  }
  Shape sizes = Shape::filled(y.dim() - 1, 1);
  sizes[0] = channels;
  return y + autocast(ops::Autocast::lower, bias).reshape(sizes);
}

void require_weight(const char* function, const Tensor& weight, int rank) {
  if (weight.dim() == rank) return;
  throw ShapeError(fmt::format("{}: the weight has {} dimensions, not {}", function, rank, to_string(weight.sizes())));
}

void require_channels(const char* function, const Tensor& x, const Tensor& weight, std::int64_t channels) {
  if (x.size(1) == channels) return;
  throw ShapeError(fmt::format("{}: the input {} has {} channels, but the weight {} takes {}", function,
                               to_string(x.sizes()), x.size(1), to_string(weight.sizes()), channels));
}

Tensor convolved(const char* function, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Conv2dOptions& options) {
  graph::NodeInfo given;
  Window window = window_of(function, options.stride, options.dilation, options.groups);
  set_padding(function, window, kernel_of(weight), options);
  given.attributes = window;
  const Tensor y = autograd::apply(Op::convolution, {autocast(Op::convolution, x), autocast(Op::convolution, weight)},
                                   std::move(given));
  return with_bias(function, y, bias);
}

/// One axis of a transposed convolution.
struct TransposedAxis {
  std::int64_t size;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t dilation;
  std::int64_t extra;  // output padding

  void check(const char* function) const {
    if (kernel < 1) throw ShapeError(fmt::format("{}: the weight has an empty window", function));
    require(function, "padding", {padding}, 0);
    require(function, "output padding", {extra}, 0);
    if (extra >= std::max(stride, dilation)) {
      throw ValueError(
          fmt::format("{}: the output padding, {}, is smaller than the stride or the dilation", function, extra));
    }
  }
  /// What the windows cover.
  std::int64_t reach() const { return (size - 1) * stride + dilation * (kernel - 1) + 1; }
  std::int64_t output() const { return reach() - 2 * padding + extra; }
  /// Output padding that a convolution with this stride would not leave out: it takes from the padding behind, and
  /// what is left of it are zeros.
  std::int64_t excess() const { return std::max<std::int64_t>(extra - (stride - 1), 0); }
  std::int64_t padding_after() const { return std::max<std::int64_t>(padding - excess(), 0); }
  std::int64_t zeros() const { return std::max<std::int64_t>(excess() - padding, 0); }
};

void require_output(const char* function, const Shape& sizes) {
  for (int axis = 2; axis < sizes.rank(); ++axis) {
    if (sizes[axis] < 1) throw ShapeError(fmt::format("{}: the output's size would be {}", function, to_string(sizes)));
  }
}

/// Without a bias.
Tensor transposed(const char* function, const Tensor& x, const Tensor& weight, const ConvTranspose2dOptions& options) {
  Window window = window_of(function, options.stride, options.dilation, options.groups);
  const Size2 kernel = kernel_of(weight);
  const TransposedAxis rows{x.size(2),
                            kernel.height,
                            options.stride.height,
                            options.padding.height,
                            options.dilation.height,
                            options.output_padding.height};
  const TransposedAxis columns{x.size(3),
                               kernel.width,
                               options.stride.width,
                               options.padding.width,
                               options.dilation.width,
                               options.output_padding.width};
  rows.check(function);
  columns.check(function);
  require_channels(function, x, weight, weight.size(0));
  window.padding = pair(options.padding);
  window.padding_after = pair({rows.padding_after(), columns.padding_after()});
  graph::NodeInfo given;
  given.attributes = window;
  given.shape = {x.size(0), weight.size(1) * options.groups, rows.output() - rows.zeros(),
                 columns.output() - columns.zeros()};
  require_output(function, given.shape);
  given.dtype = autocast(Op::convolution_input, x).dtype();
  const Tensor y =
      autograd::apply(Op::convolution_input,
                      {autocast(Op::convolution_input, x), autocast(Op::convolution_input, weight)}, std::move(given));
  return rows.zeros() + columns.zeros() == 0 ? y : pad(y, {0, columns.zeros(), 0, rows.zeros()});
}

/// The windows along the depth of volumes [n, c, depth, h, w], padded, as a view: [n, outputs, c, kernel, h, w].
struct DepthWindows {
  Shape volumes;
  Shape sizes;
  Strides strides;
};

DepthWindows depth_windows(const Shape& volumes, std::int64_t kernel, std::int64_t outputs, std::int64_t stride,
                           std::int64_t dilation) {
  const std::int64_t plane = volumes[3] * volumes[4];
  const std::int64_t channel = volumes[2] * plane;
  return {volumes,
          {volumes[0], outputs, volumes[1], kernel, volumes[3], volumes[4]},
          {volumes[1] * channel, stride * plane, channel, dilation * plane, volumes[4], 1}};
}

Tensor planes_added_up(const Tensor& y, const DepthWindows& windows);

/// The planes of every window of x, which is [n, c, depth, h, w].
Tensor planes_of(const Tensor& x, const DepthWindows& windows) {
  const Tensor result =
      functional::outside_tape([&] { return functional::strided(x, windows.sizes, windows.strides); });
  return autograd::with_gradient("conv3d", {x}, result, {}, false,
                                 [windows](const Tensor& g, std::span<const Tensor>) -> std::vector<Tensor> {
                                   return {planes_added_up(g, windows)};
                                 });
}

/// The transpose of planes_of. One term for each place in a window, because windows overlap and no term does.
Tensor planes_added_up(const Tensor& y, const DepthWindows& windows) {
  const Tensor result = functional::outside_tape([&] {
    const Strides& s = windows.strides;
    const Tensor wide = functional::wide(y);
    Tensor total;
    for (std::int64_t k = 0; k < windows.sizes[3]; ++k) {
      const ops::View view{{s[0], s[1], s[2], s[4], s[5]}, k * s[3]};
      const Tensor term = autograd::transposed_view(wide.select(3, k), view, 0, windows.volumes);
      total = total.defined() ? total + term : term;
    }
    return functional::cast(total, y.dtype());
  });
  return autograd::with_gradient(
      "conv_transpose3d", {y}, result, {}, false,
      [windows](const Tensor& g, std::span<const Tensor>) -> std::vector<Tensor> { return {planes_of(g, windows)}; });
}

Margins depth_margins(const Tensor& weight, const Conv3dOptions& options) {
  const ConvPadding3& padding = options.padding;
  if (!padding.is_same()) {
    require("conv3d", "padding", {padding.sizes().depth}, 0);
    return {padding.sizes().depth, padding.sizes().depth};
  }
  require_no_stride("conv3d", options.stride == Size3(1));
  return same_margins(weight.size(2), options.dilation.depth);
}

/// The planes of every window of volumes [n, c, depth, h, w]: [n, outputs, c, kernel, h, w].
Tensor padded_planes(const Tensor& volumes, const Tensor& weight, const Conv3dOptions& options) {
  const std::int64_t kernel = weight.size(2);
  const std::int64_t stride = options.stride.depth;
  const std::int64_t dilation = options.dilation.depth;
  const auto [before, after] = depth_margins(weight, options);
  const std::int64_t outputs = ops::window_output(volumes.size(2), kernel, stride, before, after, dilation);
  if (kernel < 1 || outputs < 1) {
    throw ShapeError(fmt::format("conv3d: a window of {} (dilation {}) does not fit in depth {} with padding {} and {}",
                                 kernel, dilation, volumes.size(2), before, after));
  }
  const Tensor padded = before + after == 0 ? volumes : pad(volumes, {0, 0, 0, 0, before, after});
  return planes_of(padded, depth_windows(padded.sizes(), kernel, outputs, stride, dilation));
}

/// [o, c, kd, kh, kw] as [o, c kd, kh, kw].
Tensor plane_weight(const Tensor& weight) {
  return weight.reshape({weight.size(0), weight.size(1) * weight.size(2), weight.size(3), weight.size(4)});
}

ConvPadding plane_padding(const ConvPadding3& padding) {
  return padding.is_same() ? ConvPadding("same") : ConvPadding(padding.sizes().plane());
}

ConvPadding beside(const ConvPadding& padding) {
  return padding.is_same() ? padding : ConvPadding(0, padding.sizes().width);
}

}  // namespace

template <class Sizes>
BasicConvPadding<Sizes>::BasicConvPadding(std::string_view name) : same_(name == "same") {
  if (!same_ && name != "valid") {
    throw ValueError(fmt::format("padding is a number, \"same\" or \"valid\", not \"{}\"", name));
  }
}
template class BasicConvPadding<Size2>;
template class BasicConvPadding<Size3>;

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

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& options) {
  require_weight("conv3d", weight, 5);
  require("conv3d", "stride", {options.stride.depth}, 1);
  require("conv3d", "dilation", {options.dilation.depth}, 1);
  require_groups("conv3d", options.groups);
  const Tensor volumes = batched("conv3d", x, 5);
  require_channels("conv3d", volumes, weight, weight.size(1) * options.groups);
  const Tensor planes = padded_planes(autocast(Op::convolution, volumes), weight, options);
  const Shape& s = planes.sizes();
  const Tensor y =
      convolved("conv3d", planes.reshape({s[0] * s[1], s[2] * s[3], s[4], s[5]}), plane_weight(weight), bias,
                {options.stride.plane(), plane_padding(options.padding), options.dilation.plane(), options.groups});
  const Tensor by_depth = y.reshape({s[0], s[1], y.size(1), y.size(2), y.size(3)});
  return unbatched(by_depth.transpose(1, 2).contiguous(), x, 5);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  require_weight("conv_transpose1d", weight, 3);
  const Tensor flat = batched("conv_transpose1d", x, 3).unsqueeze(2);
  const Tensor y = transposed(
      "conv_transpose1d", flat, weight.unsqueeze(2),
      {{1, options.stride}, {0, options.padding}, {0, options.output_padding}, options.groups, {1, options.dilation}});
  return unbatched(with_bias("conv_transpose1d", y, bias).squeeze(2), x, 3);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  require_weight("conv_transpose2d", weight, 4);
  const Tensor y = transposed("conv_transpose2d", batched("conv_transpose2d", x, 4), weight, options);
  return unbatched(with_bias("conv_transpose2d", y, bias), x, 4);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& options) {
  constexpr auto name = "conv_transpose3d";
  require_weight(name, weight, 5);
  require(name, "stride", {options.stride.depth}, 1);
  require(name, "dilation", {options.dilation.depth}, 1);
  const Tensor volumes = batched(name, x, 5);
  require_channels(name, volumes, weight, weight.size(0));
  const std::int64_t n = volumes.size(0);
  const TransposedAxis depth{volumes.size(2),       weight.size(2),         options.stride.depth,
                             options.padding.depth, options.dilation.depth, options.output_padding.depth};
  depth.check(name);
  const Tensor planes =
      volumes.transpose(1, 2).reshape({n * depth.size, volumes.size(1), volumes.size(3), volumes.size(4)});
  const Tensor y = transposed(name, planes, plane_weight(weight),
                              {options.stride.plane(), options.padding.plane(), options.output_padding.plane(),
                               options.groups, options.dilation.plane()});
  const std::int64_t channels = weight.size(1) * options.groups;
  require_output(name, {n, channels, depth.output(), y.size(2), y.size(3)});
  const DepthWindows windows = depth_windows({n, channels, depth.reach() + depth.extra, y.size(2), y.size(3)},
                                             depth.kernel, depth.size, depth.stride, depth.dilation);
  const Tensor added = planes_added_up(y.reshape(windows.sizes), windows);
  const Tensor inside = added.narrow(2, depth.padding, depth.output()).contiguous();
  return unbatched(with_bias(name, inside, bias), x, 5);
}

}  // namespace russet
