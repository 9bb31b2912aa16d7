// Averaged stochastic gradient descent.
#include <russet/functional/elementwise.h>
#include <russet/optim/asgd.h>

#include "steps.h"

namespace russet::optim {

Shape ASGD::state_shape(std::size_t place, const Tensor& parameter) const {
  return place == 0 ? Shape{} : parameter.sizes();
}

std::span<const char* const> ASGD::state_names() const {
  static constexpr const char* names[] = {"eta", "ax"};
  return names;
}

void ASGD::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { eta, ax };
  enum : std::size_t { shrink = own, share };
  const ASGDOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  Tensor& step_size = kept(state, eta, o.lr);
  const Tensor parameter = state.parameter.detach();
  const Tensor shrunk = parameter - parameter * (step_size * coefficient(shrink, state, [&] { return o.lambd; }));
  state.parameter.copy_(shrunk - gradient * step_size);
  const auto new_share = [&](const auto& steps) { return 1 / at_least(steps - 1 - o.t0, 1); };
  average(kept(state, ax), state.parameter.detach(), coefficient_of_steps(share, state, new_share));
  const auto next_size = [&](const auto& steps) { return o.lr / power(1 + o.lambd * o.lr * steps, o.alpha); };
  step_size.copy_(coefficient_of_steps(rate, state, next_size));
}

}  // namespace russet::optim
