#pragma once
// L-BFGS, which asks for the loss several times a step.
#include <russet/optim/optimizer.h>

namespace russet::optim {

enum class LineSearch : std::uint8_t { none, strong_wolfe };

struct LBFGSOptions {
  static constexpr const char* optimizer = "LBFGS";
  double lr = 1;
  /// Iterations in a step.
  std::int64_t max_iter = 20;
  /// Losses in a step; 5/4 max_iter if absent.
  std::optional<std::int64_t> max_eval{};
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  std::int64_t history_size = 100;
  LineSearch line_search_fn = LineSearch::none;

  template <class Options, class Visit>
  static void each(Options& o, Visit visit) {
    visit("lr", o.lr, Range::at_least_zero);
    visit("max_iter", o.max_iter);
    visit("max_eval", o.max_eval);
    visit("tolerance_grad", o.tolerance_grad);
    visit("tolerance_change", o.tolerance_change);
    visit("history_size", o.history_size, Range::at_least_one);
    visit("line_search_fn", o.line_search_fn);
  }
};

/// Steps along -H g, of an estimate H of the inverse Hessian from the last history_size changes of parameters and
/// gradients. Whether to go on is decided on the host: unlike other optimizers, it reads numbers back at each
/// iteration. As torch.optim.LBFGS; Nocedal, Wright, Numerical Optimization, 2006, chapters 3 and 7.
class LBFGS : public OptimizerOf<LBFGSOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  /// Throws ValueError: a step needs a closure.
  void step() override;
  /// Throws ValueError, for the same reason.
  void step_unless(const Tensor& found_inf) override;
  /// Returns the loss before the step. Throws ValueError for more than one group of parameters.
  Tensor step(const std::function<Tensor()>& closure) override;

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& dict) override;

 protected:
  std::span<const char* const> state_names() const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;

 private:
  /// All parameters as one vector: where they are, which way they go, and what is known of the way before.
  struct State {
    std::int64_t func_evals = 0;
    std::int64_t n_iter = 0;
    double t = 0;
    double h_diag = 1;
    double prev_loss = 0;
    Tensor d;
    Tensor prev_flat_grad;
    std::vector<Tensor> old_dirs;
    std::vector<Tensor> old_stps;
    std::vector<double> ro;
  };
  void remember(const Tensor& gradient);
  Tensor direction(const Tensor& gradient) const;

  State state_;
};

}  // namespace russet::optim
