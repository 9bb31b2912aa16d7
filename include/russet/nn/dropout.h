#pragma once
// Dropout: in training, zeros with probability p and the rest divided by 1 - p; in evaluation, nothing.
#include <russet/functional/nn_dropout.h>
#include <russet/nn/module.h>

namespace russet::nn {

class Dropout : public Module {
 public:
  /// Throws ValueError unless p is in [0, 1].
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override { return dropout(x, p_, is_training()); }

 private:
  double p_;
};

/// Whole channels of [n, c, h, w].
class Dropout2d : public Module {
 public:
  /// Throws ValueError unless p is in [0, 1].
  explicit Dropout2d(double p = 0.5);
  Tensor forward(const Tensor& x) override { return dropout2d(x, p_, is_training()); }

 private:
  double p_;
};

/// All of x, or whole samples of it: residual branches that are left out in training. Huang et al. 2016.
class StochasticDepth : public Module {
 public:
  /// Throws ValueError unless p is in [0, 1].
  StochasticDepth(double p, StochasticDepthMode mode);
  Tensor forward(const Tensor& x) override { return stochastic_depth(x, p_, mode_, is_training()); }

 private:
  double p_;
  StochasticDepthMode mode_;
};

}  // namespace russet::nn
