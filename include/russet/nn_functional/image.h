#pragma once
// Rearranging and resizing images: [n, c, h, w].
#include <russet/nn_functional/options.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// [..., c r^2, h, w] to [..., c, h r, w r].
Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale);
/// [..., c, h r, w r] to [..., c r^2, h, w].
Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale);
/// Channels dealt out to groups in turn.
Tensor channel_shuffle(const Tensor& x, std::int64_t groups);

/// bicubic: for images, by convolution with the cubic kernel of a = -0.75; it may overshoot.
enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, bilinear, bicubic };
struct InterpolateOptions {
  /// The output's height and width (its length is the width for [n, c, l]), or factors; exactly one of both.
  OptionalSize2 size{};
  std::optional<double> scale_factor{};
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;
};
/// Resized images [n, c, h, w], or signals [n, c, l].
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

struct UnfoldOptions {
  Size2 dilation = 1;
  Size2 padding = 0;
  Size2 stride = 1;
};
/// Every window of [n, c, h, w] as a column: [n, c kh kw, windows].
Tensor unfold(const Tensor& x, Size2 kernel, const UnfoldOptions& options = {});
/// The transpose of unfold: columns added up at their places in [n, c, output.height, output.width].
Tensor fold(const Tensor& x, Size2 output, Size2 kernel, const UnfoldOptions& options = {});

}  // namespace russet
