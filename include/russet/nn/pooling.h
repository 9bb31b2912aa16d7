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

class MaxPool3d : public Module {
 public:
  explicit MaxPool3d(Size3 kernel, const MaxPool3dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool3d(x, kernel_, options_); }

 private:
  Size3 kernel_;
  MaxPool3dOptions options_;
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

class AvgPool3d : public Module {
 public:
  explicit AvgPool3d(Size3 kernel, const AvgPool3dOptions& options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool3d(x, kernel_, options_); }

 private:
  Size3 kernel_;
  AvgPool3dOptions options_;
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

class AdaptiveAvgPool3d : public Module {
 public:
  explicit AdaptiveAvgPool3d(Size3 output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool3d(x, output_); }

 private:
  Size3 output_;
};

class AdaptiveMaxPool1d : public Module {
 public:
  explicit AdaptiveMaxPool1d(std::int64_t output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool1d(x, output_); }

 private:
  std::int64_t output_;
};

class AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2 output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool2d(x, output_); }

 private:
  Size2 output_;
};

class AdaptiveMaxPool3d : public Module {
 public:
  explicit AdaptiveMaxPool3d(Size3 output) : output_(output) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool3d(x, output_); }

 private:
  Size3 output_;
};

/// What pooling with indices took, back at its places: max_unpool1d, 2d or 3d of values and indices.
template <auto F, class Size, class Options>
class MaxUnpool : public Module {
 public:
  explicit MaxUnpool(Size kernel, const Options& options = {}) : kernel_(kernel), options_(options) {}
  using Module::forward;
  Tensor forward(const Tensor& values, const Tensor& indices) { return F(values, indices, kernel_, options_); }
  Tensor forward_all(std::span<const Tensor> inputs) override {
    if (inputs.size() == 2) return forward(inputs[0], inputs[1]);
    throw ValueError("MaxUnpool: takes two inputs, values and indices");
  }
  Tensor operator()(const Tensor& values, const Tensor& indices) {
    const Tensor inputs[] = {values, indices};
    return Module::operator()(inputs);
  }

 private:
  Size kernel_;
  Options options_;
};
using MaxUnpool1d = MaxUnpool<max_unpool1d, std::int64_t, MaxUnpool1dOptions>;
using MaxUnpool2d = MaxUnpool<max_unpool2d, Size2, MaxUnpool2dOptions>;
using MaxUnpool3d = MaxUnpool<max_unpool3d, Size3, MaxUnpool3dOptions>;

}  // namespace russet::nn
