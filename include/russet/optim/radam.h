#pragma once
// RAdam: Adam that starts without its second moment.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct RAdamOptions {
  static constexpr const char* optimizer = "RAdam";
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  /// p *= 1 - lr weight_decay instead of a gradient of the decay.
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("betas", o.betas, Range::below_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("decoupled_weight_decay", o.decoupled_weight_decay);
    visit("maximize", o.maximize);
  }
};

/// Adam with a step of lr m' alone while the variance of v' cannot be told (t <= 5 for the usual betas), rectified
/// later. As torch.optim.RAdam; Liu et al. 2020.
class RAdam : public OptimizerOf<RAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
