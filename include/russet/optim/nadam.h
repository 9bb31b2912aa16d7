#pragma once
// NAdam: Adam with Nesterov's momentum.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct NAdamOptions {
  static constexpr const char* optimizer = "NAdam";
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  /// p *= 1 - lr weight_decay instead of a gradient of the decay.
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("betas", o.betas, Range::below_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("momentum_decay", o.momentum_decay, Range::at_least_zero);
    visit("decoupled_weight_decay", o.decoupled_weight_decay);
    visit("maximize", o.maximize);
  }
};

/// Adam whose step is made of the gradient and the next step's share of m: mu_t = b1 (1 - 0.96^(t momentum_decay) / 2).
/// As torch.optim.NAdam; Dozat 2016.
class NAdam : public OptimizerOf<NAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  Shape state_shape(std::size_t place, const Tensor& parameter) const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
