#pragma once
// Optimizers by name.
#include <russet/optim/optimizer.h>
#include <memory>
#include <string>
#include <vector>

namespace russet::optim {

/// Which optimizer with which numbers; `momentum` is SGD's.
struct OptimizerChoice {
  std::string name = "sgd";
  double lr = 1e-3;
  double momentum = 0.9;
  double weight_decay = 0;
};
/// Throws ValueError for an unknown name.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice, const std::vector<Tensor>& parameters);

}  // namespace russet::optim
