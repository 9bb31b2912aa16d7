#pragma once
// Averaged stochastic gradient descent.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct ASGDOptions {
  static constexpr const char* optimizer = "ASGD";
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  /// Where the average starts.
  double t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("lambd", o.lambd);
    visit("alpha", o.alpha);
    visit("t0", o.t0);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("maximize", o.maximize);
  }
};

/// p = (1 - lambd eta) p - eta g, of eta = lr / (1 + lambd lr t)^alpha of the step before; the state "ax" is the
/// average of p from step t0 on. As torch.optim.ASGD; Polyak, Juditsky 1992.
class ASGD : public OptimizerOf<ASGDOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  Shape state_shape(std::size_t place, const Tensor& parameter) const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
