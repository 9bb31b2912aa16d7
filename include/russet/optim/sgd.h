#pragma once
// Stochastic gradient descent, with momentum.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

/// g += weight_decay p; buffer = momentum buffer + (1 - dampening) g (g itself at first); p -= lr buffer, or with
/// nesterov lr (g + momentum buffer). As torch.optim.SGD.
class SGD : public Optimizer {
 public:
  /// Throws ValueError for options out of range; nesterov needs momentum and no dampening.
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});
  explicit SGD(const std::vector<ParamGroup<SGDOptions>>& groups);

  using Optimizer::set_lr;
  double lr(std::size_t group = 0) const override { return options_.at(group).lr; }
  void set_lr(double lr, std::size_t group) override { options_.at(group).lr = lr; }
  double momentum(std::size_t group = 0) const override { return options_.at(group).momentum; }
  void set_momentum(double momentum, std::size_t group) override { options_.at(group).momentum = momentum; }
  const SGDOptions& group_options(std::size_t group = 0) const { return options_.at(group); }

 protected:
  bool keeps(std::size_t group, std::size_t place) const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
  std::map<std::string, double> options(std::size_t group) const override;
  void set_options(std::size_t group, const std::map<std::string, double>& numbers) override;

 private:
  std::vector<SGDOptions> options_;
};

}  // namespace russet::optim
