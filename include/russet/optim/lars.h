#pragma once
// LARS: layer-wise adaptive rates, for large batches.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct LARSOptions {
  static constexpr const char* optimizer = "LARS";
  /// SimCLR: 0.3 for every 256 samples of a batch.
  double lr = 0.3;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 1e-3;
  bool nesterov = false;
  /// Parameters with one axis or none, as biases and weights of norms are, take plain steps without decay.
  bool exclude_bias_and_norm = true;
  bool maximize = false;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("momentum", o.momentum, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("trust_coefficient", o.trust_coefficient, Range::at_least_zero);
    visit("nesterov", o.nesterov);
    visit("exclude_bias_and_norm", o.exclude_bias_and_norm);
    visit("maximize", o.maximize);
  }
};

/// g += weight_decay p; b = momentum b + lr trust g, of trust = trust_coefficient |p| / |g| (1 where either is 0); p -=
/// b, or with nesterov momentum b + lr trust g. You, Gitman, Ginsburg 2017, as SimCLR has it.
class LARS : public OptimizerOf<LARSOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
