#include <fmt/format.h>
#include <russet/optim/adam.h>
#include <russet/optim/make_optimizer.h>
#include <russet/optim/sgd.h>

namespace russet::optim {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice, const std::vector<Tensor>& parameters) {
  if (choice.name == "sgd") {
    return std::make_unique<SGD>(
        parameters, SGDOptions{.lr = choice.lr, .momentum = choice.momentum, .weight_decay = choice.weight_decay});
  }
  if (choice.name == "adam") {
    return std::make_unique<Adam>(parameters, AdamOptions{.lr = choice.lr, .weight_decay = choice.weight_decay});
  }
  if (choice.name == "adamw") {
    return std::make_unique<AdamW>(parameters, AdamWOptions{.lr = choice.lr, .weight_decay = choice.weight_decay});
  }
  throw ValueError(fmt::format("optimizer {}: the choices are sgd, adam, adamw", choice.name));
}

}  // namespace russet::optim
