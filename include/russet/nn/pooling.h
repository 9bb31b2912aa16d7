#pragma once
// Pooling.
#include <russet/functional/nn_pooling.h>
#include <russet/nn/module.h>

namespace russet::nn {

class MaxPool1d : public Module {
 public:
  explicit MaxPool1d(std::int64_t kernel, const MaxPool1dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool1d(x, kernel_, options_); }

 private:
  std::int64_t kernel_;
  MaxPool1dOptions options_;
};

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Size2 kernel, const MaxPool2dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_, options_); }

 private:
  Size2 kernel_;
  MaxPool2dOptions options_;
};

class AvgPool1d : public Module {
 public:
  explicit AvgPool1d(std::int64_t kernel, const AvgPool1dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool1d(x, kernel_, options_); }

 private:
  std::int64_t kernel_;
  AvgPool1dOptions options_;
};

class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Size2 kernel, const AvgPool2dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_, options_); }

 private:
  Size2 kernel_;
  AvgPool2dOptions options_;
};

class AdaptiveAvgPool1d : public Module {
 public:
  explicit AdaptiveAvgPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool1d(x, output_); }

 private:
  std::int64_t output_;
};

class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_); }

 private:
  Size2 output_;
};

class AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2 output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool2d(x, output_); }

 private:
  Size2 output_;
};

}  // namespace russet::nn
