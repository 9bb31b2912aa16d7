#pragma once
// Convolutions over one or two axes. A batch axis may be missing: [channels, ...] in, [channels, ...] out.
#include <russet/nn_functional/options.h>
#include <russet/tensor.h>
#include <string_view>

namespace russet {

/// Zeros around the input: numbers, or "same" (the output has the input's size; stride 1) or "valid" (none).
class ConvPadding {
 public:
  template <std::integral T>
  constexpr ConvPadding(T both) : sizes_(both) {}
  constexpr ConvPadding(std::int64_t height, std::int64_t width) : sizes_(height, width) {}
  constexpr ConvPadding(Size2 sizes) : sizes_(sizes) {}
  /// Throws ValueError for another word.
  ConvPadding(const char* name) : ConvPadding(std::string_view(name)) {}
  ConvPadding(std::string_view name);

  constexpr bool is_same() const { return same_; }
  constexpr Size2 sizes() const { return sizes_; }

 private:
  Size2 sizes_{0};
  bool same_ = false;
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  ConvPadding padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
};

/// x: [n, c, l], weight: [o, c / groups, k], bias: [o] or undefined. Returns [n, o, l'].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});
/// x: [n, c, h, w], weight: [o, c / groups, kh, kw], bias: [o] or undefined. Returns [n, o, h', w'].
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  std::int64_t dilation = 1;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  /// Rows and columns added at the end of the output; smaller than the stride or the dilation (ValueError).
  Size2 output_padding = 0;
  std::int64_t groups = 1;
  Size2 dilation = 1;
};

/// The gradient of conv1d for its input, as an operator. x: [n, c, l], weight: [c, o / groups, k].
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});
/// The gradient of conv2d for its input, as an operator. x: [n, c, h, w], weight: [c, o / groups, kh, kw].
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

}  // namespace russet
