#pragma once
// Adafactor.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdafactorOptions {
  static constexpr const char* optimizer = "Adafactor";
  /// Also the largest relative step.
  double lr = 1e-2;
  double beta2_decay = -0.8;
  /// The least size of an estimate (of the type's precision if absent), and of a parameter.
  std::pair<std::optional<double>, double> eps{std::nullopt, 1e-3};
  /// Where the size of an update is clipped.
  double d = 1;
  double weight_decay = 0;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("beta2_decay", o.beta2_decay, Range::at_most_zero);
    visit("eps", o.eps, Range::at_least_zero);
    visit("d", o.d, Range::at_least_one);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("maximize", o.maximize);
  }
};

/// Keeps, of the mean of g^2, those of rows and columns alone. As torch.optim.Adafactor; Shazeer, Stern 2018.
class Adafactor : public OptimizerOf<AdafactorOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  Shape state_shape(std::size_t place, const Tensor& parameter) const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
