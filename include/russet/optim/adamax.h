#pragma once
// Adamax.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdamaxOptions {
  static constexpr const char* optimizer = "Adamax";
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("betas", o.betas, Range::below_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("maximize", o.maximize);
  }
};

/// m = b1 m + (1 - b1) g; u = max(b2 u, |g| + eps); p -= lr / (1 - b1^t) m / u. As torch.optim.Adamax; Kingma, Ba 2015.
class Adamax : public OptimizerOf<AdamaxOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
