#pragma once
// Windows of images, images of other sizes, and blurred ones.
#include <russet/functional/nn_image.h>
#include <russet/functional/nn_warp.h>
#include <russet/nn/module.h>

#include <utility>

namespace russet::nn {

/// Every window of [n, c, h, w] as a column: [n, c kh kw, windows].
class Unfold : public Module {
 public:
  explicit Unfold(Size2 kernel, const UnfoldOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return unfold(x, kernel_, options_); }

 private:
  Size2 kernel_;
  UnfoldOptions options_;
};

/// Columns added up at their places in [n, c, output].
class Fold : public Module {
 public:
  Fold(Size2 output, Size2 kernel, const UnfoldOptions& options = {})
      : output_(output), kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return fold(x, output_, kernel_, options_); }

 private:
  Size2 output_;
  Size2 kernel_;
  UnfoldOptions options_;
};

/// interpolate as a layer.
class Upsample : public Module {
 public:
  explicit Upsample(const InterpolateOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override { return interpolate(x, options_); }

 private:
  InterpolateOptions options_;
};

/// gaussian_blur2d as a layer.
class GaussianBlur2d : public Module {
 public:
  GaussianBlur2d(Size2 kernel_size, std::pair<double, double> sigma, const GaussianBlur2dOptions& options = {})
      : kernel_size_(kernel_size), sigma_(sigma), options_(options) {}
  Tensor forward(const Tensor& x) override { return gaussian_blur2d(x, kernel_size_, sigma_, options_); }

 private:
  Size2 kernel_size_;
  std::pair<double, double> sigma_;
  GaussianBlur2dOptions options_;
};

}  // namespace russet::nn
