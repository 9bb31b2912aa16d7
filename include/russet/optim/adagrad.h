#pragma once
// Adagrad.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdagradOptions {
  static constexpr const char* optimizer = "Adagrad";
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("lr_decay", o.lr_decay, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("initial_accumulator_value", o.initial_accumulator_value, Range::at_least_zero);
    visit("eps", o.eps, Range::at_least_zero);
    visit("maximize", o.maximize);
  }
};

/// sum += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps). As torch.optim.Adagrad; Duchi, Hazan, Singer
/// 2011.
class Adagrad : public OptimizerOf<AdagradOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
