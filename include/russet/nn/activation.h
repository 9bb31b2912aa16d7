#pragma once
// Activation functions as modules; nn_functional/activation.h says what each computes.
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/reduction.h>
#include <russet/nn/module.h>

namespace russet::nn {

/// A function of a tensor as a module: nn::Function(f), for any f that takes and gives a tensor.
class Function : public Module {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

/// A module that is a function without options.
template <Tensor (*F)(const Tensor&)>
class Activation : public Module {
 public:
  Tensor forward(const Tensor& x) override { return F(x); }
};

class ReLU : public Activation<relu> {};
class ReLU6 : public Activation<relu6> {};
class SELU : public Activation<selu> {};
class SiLU : public Activation<silu> {};
class Mish : public Activation<mish> {};
class Sigmoid : public Activation<sigmoid> {};
class Tanh : public Activation<russet::tanh> {};
class Softsign : public Activation<softsign> {};
class Tanhshrink : public Activation<tanhshrink> {};
class Hardsigmoid : public Activation<hardsigmoid> {};
class Hardswish : public Activation<hardswish> {};
class LogSigmoid : public Activation<logsigmoid> {};

class GELU : public Module {
 public:
  explicit GELU(GeluApproximation approximation = GeluApproximation::none) : approximation_(approximation) {}
  Tensor forward(const Tensor& x) override { return gelu(x, approximation_); }

 private:
  GeluApproximation approximation_;
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, negative_slope_); }

 private:
  double negative_slope_;
};

/// A learned slope below zero: one, or one a channel.
class PReLU : public Module {
 public:
  explicit PReLU(std::int64_t channels = 1, double initial = 0.25);
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }

  Parameter weight;
};

class ELU : public Module {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) override { return elu(x, alpha_); }

 private:
  double alpha_;
};

class CELU : public Module {
 public:
  explicit CELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) override { return celu(x, alpha_); }

 private:
  double alpha_;
};

class Softplus : public Module {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) override { return softplus(x, beta_, threshold_); }

 private:
  double beta_;
  double threshold_;
};

class Softshrink : public Module {
 public:
  explicit Softshrink(double lambda = 0.5) : lambda_(lambda) {}
  Tensor forward(const Tensor& x) override { return softshrink(x, lambda_); }

 private:
  double lambda_;
};

class Hardshrink : public Module {
 public:
  explicit Hardshrink(double lambda = 0.5) : lambda_(lambda) {}
  Tensor forward(const Tensor& x) override { return hardshrink(x, lambda_); }

 private:
  double lambda_;
};

class Hardtanh : public Module {
 public:
  explicit Hardtanh(double min = -1, double max = 1) : min_(min), max_(max) {}
  Tensor forward(const Tensor& x) override { return hardtanh(x, min_, max_); }

 private:
  double min_;
  double max_;
};

class Threshold : public Module {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& x) override { return threshold(x, threshold_, value_); }

 private:
  double threshold_;
  double value_;
};

class GLU : public Module {
 public:
  explicit GLU(std::int64_t axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return glu(x, axis_); }

 private:
  std::int64_t axis_;
};

class Softmax : public Module {
 public:
  explicit Softmax(std::int64_t axis) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return softmax(x, axis_); }

 private:
  std::int64_t axis_;
};

class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(std::int64_t axis) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, axis_); }

 private:
  std::int64_t axis_;
};

class Softmin : public Module {
 public:
  explicit Softmin(std::int64_t axis) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return softmin(x, axis_); }

 private:
  std::int64_t axis_;
};

}  // namespace russet::nn
