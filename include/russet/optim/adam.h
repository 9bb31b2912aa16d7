#pragma once
// Adam and AdamW.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdamOptions {
  static constexpr const char* optimizer = "Adam";
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  /// Divide by the largest second moment so far.
  bool amsgrad = false;
  bool maximize = false;
  /// p *= 1 - lr weight_decay instead of a gradient of the decay.
  bool decoupled_weight_decay = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("betas", o.betas, Range::below_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("amsgrad", o.amsgrad);
    visit("maximize", o.maximize);
    visit("decoupled_weight_decay", o.decoupled_weight_decay);
  }
};

struct AdamWOptions {
  static constexpr const char* optimizer = "AdamW";
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  static constexpr bool decoupled_weight_decay = true;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("betas", o.betas, Range::below_one);
    visit("eps", o.eps, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("amsgrad", o.amsgrad);
    visit("maximize", o.maximize);
  }
};

template <class Options>
class AdamOf : public OptimizerOf<Options> {
 public:
  using OptimizerOf<Options>::OptimizerOf;

 protected:
  using typename Optimizer::ParameterState;
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m' / (sqrt(v') + eps), of m' = m / (1 - b1^t) and
/// v' = v / (1 - b2^t). Adam adds weight_decay p to g. As torch.optim.Adam; Kingma, Ba 2015.
class Adam : public AdamOf<AdamOptions> {
 public:
  using AdamOf::AdamOf;
};

/// Adam with decoupled weight decay. As torch.optim.AdamW; Loshchilov, Hutter 2019.
class AdamW : public AdamOf<AdamWOptions> {
 public:
  using AdamOf::AdamOf;
};

}  // namespace russet::optim
