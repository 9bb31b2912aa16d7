#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/optim/adadelta.h>
#include <russet/optim/adafactor.h>
#include <russet/optim/adagrad.h>
#include <russet/optim/adam.h>
#include <russet/optim/adamax.h>
#include <russet/optim/asgd.h>
#include <russet/optim/lars.h>
#include <russet/optim/make_optimizer.h>
#include <russet/optim/nadam.h>
#include <russet/optim/radam.h>
#include <russet/optim/rmsprop.h>
#include <russet/optim/rprop.h>
#include <russet/optim/sgd.h>

namespace russet::optim {
namespace {

template <class Made, class Options>
std::unique_ptr<Optimizer> make(const OptimizerChoice& choice, const std::vector<Tensor>& parameters) {
  Options options;
  options.lr = choice.lr;
  if constexpr (std::is_same_v<Made, SGD> || std::is_same_v<Made, LARS>) options.momentum = choice.momentum;
  if constexpr (requires { options.weight_decay; }) {
    options.weight_decay = choice.weight_decay;
  } else if (choice.weight_decay != 0) {
    throw ValueError(fmt::format("{}: there is no weight decay to set", choice.name));
  }
  return std::make_unique<Made>(parameters, options);
}

template <class Options>
constexpr double usual_decay() {
  if constexpr (requires(Options o) { o.weight_decay; }) return Options{}.weight_decay;
  return 0;
}

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerChoice&, const std::vector<Tensor>&);
  double lr;
  double weight_decay;
};
template <class Made, class Options>
constexpr Row row(std::string_view name) {
  return {name, &make<Made, Options>, Options{}.lr, usual_decay<Options>()};
}
/// SGD's default of 1e-3 in PyTorch is slow for nearly everything.
constexpr Row table[] = {
    {"sgd", &make<SGD, SGDOptions>, 0.05, 0},
    row<Adam, AdamOptions>("adam"),
    row<AdamW, AdamWOptions>("adamw"),
    row<Adadelta, AdadeltaOptions>("adadelta"),
    row<Adafactor, AdafactorOptions>("adafactor"),
    row<Adagrad, AdagradOptions>("adagrad"),
    row<Adamax, AdamaxOptions>("adamax"),
    row<ASGD, ASGDOptions>("asgd"),
    row<LARS, LARSOptions>("lars"),
    row<NAdam, NAdamOptions>("nadam"),
    row<RAdam, RAdamOptions>("radam"),
    row<RMSprop, RMSpropOptions>("rmsprop"),
    row<Rprop, RpropOptions>("rprop"),
};

const Row& find(std::string_view name) {
  for (const Row& candidate : table) {
    if (candidate.name == name) return candidate;
  }
  throw ValueError(fmt::format("optimizer {}: the choices are {}", name, fmt::join(list_optimizers(), ", ")));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice, const std::vector<Tensor>& parameters) {
  return find(choice.name).make(choice, parameters);
}

std::vector<std::string> list_optimizers() {
  std::vector<std::string> names;
  for (const Row& listed : table) names.emplace_back(listed.name);
  return names;
}

OptimizerChoice usual_choice(std::string_view name) {
  const Row& found = find(name);
  return {.name = std::string(name), .lr = found.lr, .weight_decay = found.weight_decay};
}

}  // namespace russet::optim
