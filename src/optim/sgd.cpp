// Stochastic gradient descent.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/optim/sgd.h>

#include "groups.h"

namespace russet::optim {
namespace {

enum Coefficient : std::size_t { rate, decay, inertia, share };

void check(const SGDOptions& options) {
  require_at_least_zero("SGD", "lr", options.lr);
  require_at_least_zero("SGD", "momentum", options.momentum);
  require_at_least_zero("SGD", "weight_decay", options.weight_decay);
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw ValueError("SGD: nesterov takes a momentum above 0 and a dampening of 0");
  }
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{std::move(parameters), options}}) {}

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups)
    : Optimizer("SGD", {"momentum_buffer"}, parameters_of(groups)), options_(options_of(groups)) {
  for (const SGDOptions& options : options_) check(options);
}

bool SGD::keeps(std::size_t group, std::size_t) const { return options_[group].momentum != 0; }

void SGD::update(std::size_t group, ParameterState& state, const Tensor& given) {
  const SGDOptions& options = options_[group];
  Tensor gradient = options.maximize ? -given : given;
  if (options.weight_decay != 0) {
    gradient = gradient + state.parameter.detach() * coefficient(decay, state, options.weight_decay);
  }
  if (options.momentum != 0) {
    const Tensor& buffer = state.tensors[0];
    // The first gradient enters whole: the buffer's zeros add nothing to it.
    const double part = state.steps == 1 ? 1 : 1 - options.dampening;
    const Tensor& momentum = coefficient(inertia, state, options.momentum);
    buffer.copy_(buffer * momentum + gradient * coefficient(share, state, part));
    gradient = options.nesterov ? gradient + buffer * momentum : buffer;
  }
  state.parameter.sub_(gradient * coefficient(rate, state, options.lr));
}

std::map<std::string, double> SGD::options(std::size_t group) const {
  const SGDOptions& o = options_[group];
  return {{"lr", o.lr},
          {"momentum", o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov ? 1 : 0},
          {"maximize", o.maximize ? 1 : 0}};
}

void SGD::set_options(std::size_t group, const std::map<std::string, double>& numbers) {
  const auto number = [&](const char* name) { return numbers.at(name); };
  options_[group] = {number("lr"),           number("momentum"),      number("dampening"),
                     number("weight_decay"), number("nesterov") != 0, number("maximize") != 0};
}

}  // namespace russet::optim
