#pragma once
// Stochastic gradient descent, with momentum.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct SGDOptions {
  static constexpr const char* optimizer = "SGD";
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  /// nesterov needs momentum and no dampening.
  void check(const std::vector<Tensor>& parameters) const;
  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("momentum", o.momentum, Range::at_least_zero);
    visit("dampening", o.dampening);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("nesterov", o.nesterov);
    visit("maximize", o.maximize);
  }
};

/// g += weight_decay p; buffer = momentum buffer + (1 - dampening) g (g itself at first); p -= lr buffer, or with
/// nesterov lr (g + momentum buffer). As torch.optim.SGD.
class SGD : public OptimizerOf<SGDOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
