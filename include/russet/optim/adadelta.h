#pragma once
// Adadelta.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdadeltaOptions {
  static constexpr const char* optimizer = "Adadelta";
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("rho", o.rho, Range::to_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("maximize", o.maximize);
  }
};

/// v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; p -= lr d. As
/// torch.optim.Adadelta; Zeiler 2012.
class Adadelta : public OptimizerOf<AdadeltaOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
