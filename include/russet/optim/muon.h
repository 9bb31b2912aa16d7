#pragma once
// Muon, for the matrices of hidden layers.
#include <russet/optim/optimizer.h>

namespace russet::optim {

/// How the rate is scaled for a matrix [a, b]: by sqrt(max(1, a / b)), or by 0.2 sqrt(max(a, b)).
enum class AdjustLr : std::uint8_t { original, match_rms_adamw };

struct MuonOptions {
  static constexpr const char* optimizer = "Muon";
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  /// Of the polynomial of the Newton-Schulz iteration.
  std::array<double, 3> ns_coefficients{3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  std::int64_t ns_steps = 5;
  AdjustLr adjust_lr_fn = AdjustLr::original;

  /// Throws ValueError for parameters that are no matrices, and for 100 ns_steps or more.
  void check(const std::vector<Tensor>& parameters) const;
  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("weight_decay", o.weight_decay, Range::at_least_zero);
    visit("momentum", o.momentum, Range::at_least_zero);
    visit("nesterov", o.nesterov);
    visit("ns_coefficients", o.ns_coefficients);
    visit("eps", o.eps);
    visit("ns_steps", o.ns_steps);
    visit("adjust_lr_fn", o.adjust_lr_fn);
  }
};

/// The momentum's orthogonal factor (in bfloat16) is the update; decay as in AdamW. Biases, norms and embeddings want
/// another optimizer. As torch.optim.Muon; Jordan et al. 2024.
class Muon : public OptimizerOf<MuonOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
};

}  // namespace russet::optim
