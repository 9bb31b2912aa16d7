#pragma once
// Rprop, for gradients of the whole data set.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct RpropOptions {
  static constexpr const char* optimizer = "Rprop";
  /// The first step size of every element.
  double lr = 1e-2;
  /// What a step size is multiplied with where the gradient's sign changed, and where it did not.
  std::pair<double, double> etas{0.5, 1.2};
  /// The smallest and the largest.
  std::pair<double, double> step_sizes{1e-6, 50};
  bool maximize = false;

  /// Throws ValueError unless 0 < etas.first < 1 < etas.second.
  void check(const std::vector<Tensor>& parameters) const;
  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("etas", o.etas);
    visit("step_sizes", o.step_sizes);
    visit("maximize", o.maximize);
  }
};

/// Steps by the sign of the gradient, with a step size for every element. As torch.optim.Rprop; Riedmiller, Braun 1993.
class Rprop : public OptimizerOf<RpropOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
