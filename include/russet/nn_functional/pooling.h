#pragma once
// Pooling over the last one or two axes of [n, c, l] or [n, c, h, w]; the batch axis may be missing.
#include <russet/functional/reduction.h>
#include <russet/nn_functional/options.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// `stride` is the window's size unless given. ceil_mode: windows may reach beyond the end, if they start before it.
struct MaxPool1dOptions {
  std::optional<std::int64_t> stride{};
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool ceil_mode = false;
};
struct MaxPool2dOptions {
  OptionalSize2 stride{};
  Size2 padding = 0;
  Size2 dilation = 1;
  bool ceil_mode = false;
};

/// The largest element of each window; of equal ones the first takes the gradient. Throws ValueError for a padding of
/// more than half the window.
Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options = {});
Tensor max_pool2d(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options = {});
/// With the positions of the largest elements, in row-major order of the pooled axes (int64).
ValuesIndices max_pool1d_with_indices(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options = {});
ValuesIndices max_pool2d_with_indices(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options = {});

struct MaxUnpool2dOptions {
  OptionalSize2 stride{};
  Size2 padding = 0;
  /// The height and width of the result; the smallest that pool to x's if not given.
  OptionalSize2 output_size{};
};
/// x's elements back at the places that max_pool2d_with_indices found them, zeros elsewhere. Throws IndexError, when
/// the result is read, for a place outside of it.
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Size2 kernel, const MaxUnpool2dOptions& options = {});

struct AvgPool1dOptions {
  std::optional<std::int64_t> stride{};
  std::int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
struct AvgPool2dOptions {
  OptionalSize2 stride{};
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override{};
};

/// The mean of each window; padding counts as zeros, or not at all.
Tensor avg_pool1d(const Tensor& x, std::int64_t kernel, const AvgPool1dOptions& options = {});
Tensor avg_pool2d(const Tensor& x, Size2 kernel, const AvgPool2dOptions& options = {});

/// Means and maxima over windows chosen so that the output has the given size: window i runs from
/// floor(i * size / output) to ceil((i + 1) * size / output).
Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output);
Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output);
Tensor adaptive_max_pool2d(const Tensor& x, Size2 output);

}  // namespace russet
