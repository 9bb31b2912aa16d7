// Adam and AdamW.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/optim/adam.h>

#include <cmath>

#include "groups.h"

namespace russet::optim {
namespace {

enum Coefficient : std::size_t { rate, decay, new_share, keep_square, new_square, correction, floor_of_root };
enum StateTensor : std::size_t { exp_avg, exp_avg_sq, max_exp_avg_sq };

void check(const char* name, const AdamOptions& options) {
  require_at_least_zero(name, "lr", options.lr);
  require_at_least_zero(name, "eps", options.eps);
  require_at_least_zero(name, "weight_decay", options.weight_decay);
  for (const double beta : {options.betas.first, options.betas.second}) {
    if (!(beta >= 0 && beta < 1)) throw ValueError(fmt::format("{}: a beta of {}, which is not in [0, 1)", name, beta));
  }
}

std::vector<ParamGroup<AdamOptions>> as_adam(const std::vector<ParamGroup<AdamWOptions>>& groups) {
  std::vector<ParamGroup<AdamOptions>> converted;
  for (const auto& [parameters, o] : groups) {
    converted.push_back({parameters, {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize}});
  }
  return converted;
}

}  // namespace

Adam::Adam(const char* name, const std::vector<ParamGroup<AdamOptions>>& groups, bool decoupled)
    : Optimizer(name, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, parameters_of(groups)),
      options_(options_of(groups)),
      decoupled_(decoupled) {
  for (const AdamOptions& options : options_) check(name, options);
}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam(std::vector<ParamGroup<AdamOptions>>{{std::move(parameters), options}}) {}

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups) : Adam("Adam", groups, false) {}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{std::move(parameters), options}}) {}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups) : Adam("AdamW", as_adam(groups), true) {}

bool Adam::keeps(std::size_t group, std::size_t place) const {
  return place != max_exp_avg_sq || options_[group].amsgrad;
}

void Adam::update(std::size_t group, ParameterState& state, const Tensor& given) {
  const AdamOptions& o = options_[group];
  const auto steps = static_cast<double>(state.steps);
  const double mean_correction = 1 - std::pow(o.betas.first, steps);
  const double square_correction = 1 - std::pow(o.betas.second, steps);
  Tensor parameter = state.parameter.detach();
  Tensor gradient = o.maximize ? -given : given;
  if (o.weight_decay != 0) {
    if (decoupled_) {
      parameter = parameter * coefficient(decay, state, 1 - o.lr * o.weight_decay);
    } else {
      gradient = gradient + parameter * coefficient(decay, state, o.weight_decay);
    }
  }
  const Tensor& mean = state.tensors[exp_avg];
  const Tensor& square = state.tensors[exp_avg_sq];
  mean.copy_(mean + (gradient - mean) * coefficient(new_share, state, 1 - o.betas.first));
  square.copy_(square * coefficient(keep_square, state, o.betas.second) +
               gradient * gradient * coefficient(new_square, state, 1 - o.betas.second));
  Tensor largest = square;
  if (o.amsgrad) {
    largest = state.tensors[max_exp_avg_sq];
    largest.copy_(maximum(largest, square));
  }
  const Tensor root = sqrt(largest) * coefficient(correction, state, 1 / std::sqrt(square_correction)) +
                      coefficient(floor_of_root, state, o.eps);
  state.parameter.copy_(parameter - mean / root * coefficient(rate, state, o.lr / mean_correction));
}

std::map<std::string, double> Adam::options(std::size_t group) const {
  const AdamOptions& o = options_[group];
  return {{"lr", o.lr},
          {"beta1", o.betas.first},
          {"beta2", o.betas.second},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"amsgrad", o.amsgrad ? 1 : 0},
          {"maximize", o.maximize ? 1 : 0}};
}

void Adam::set_options(std::size_t group, const std::map<std::string, double>& numbers) {
  const auto number = [&](const char* name) { return numbers.at(name); };
  options_[group] = {number("lr"),           {number("beta1"), number("beta2")},
                     number("eps"),          number("weight_decay"),
                     number("amsgrad") != 0, number("maximize") != 0};
}

}  // namespace russet::optim
