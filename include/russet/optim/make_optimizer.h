#pragma once
// Optimizers by name.
#include <russet/optim/optimizer.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace russet::optim {

/// Which optimizer with which numbers; `momentum` is SGD's and LARS'.
struct OptimizerChoice {
  std::string name = "sgd";
  double lr = 1e-3;
  double momentum = 0.9;
  double weight_decay = 0;
};
/// Throws ValueError for an unknown name, and for a weight decay of an optimizer that has none.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice, const std::vector<Tensor>& parameters);

/// All names, in order. LBFGS, which needs a closure, and Muon, which takes matrices alone, have none.
std::vector<std::string> list_optimizers();
/// With the learning rate and the weight decay that it usually has. Throws ValueError for an unknown name.
OptimizerChoice usual_choice(std::string_view name);

}  // namespace russet::optim
