#pragma once
// RMSprop.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct RMSpropOptions {
  static constexpr const char* optimizer = "RMSprop";
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  /// Divide by the deviation from the mean gradient.
  bool centered = false;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("alpha", o.alpha, Range::at_least_zero);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("momentum", o.momentum, Range::at_least_zero);
    visit("centered", o.centered);
    visit("maximize", o.maximize);
  }
};

/// v = alpha v + (1 - alpha) g^2; d = g / (sqrt(v) + eps); p -= lr d, or with momentum lr (b = momentum b + d). As
/// torch.optim.RMSprop; Hinton 2012.
class RMSprop : public OptimizerOf<RMSpropOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
