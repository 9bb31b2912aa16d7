// RAdam.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/optim/radam.h>

#include "steps.h"

namespace russet::optim {

std::span<const char* const> RAdam::state_names() const {
  static constexpr const char* names[] = {"exp_avg", "exp_avg_sq"};
  return names;
}

void RAdam::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { exp_avg, exp_avg_sq };
  enum : std::size_t { new_share = own, new_square, adaptive, adaptive_rate, floor_of_root };
  const RAdamOptions& o = group_options(group);
  Tensor parameter = state.parameter.detach();
  const Tensor gradient = descent(state, given, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay && o.weight_decay != 0) {
    parameter = parameter * coefficient(decay, state, [&] { return 1 - o.lr * o.weight_decay; });
  }
  const Tensor mean =
      average(kept(state, exp_avg), gradient, coefficient(new_share, state, [&] { return 1 - o.betas.first; }));
  const Tensor square = average(kept(state, exp_avg_sq), gradient * gradient,
                                coefficient(new_square, state, [&] { return 1 - o.betas.second; }));
  const double longest = 2 / (1 - o.betas.second) - 1;
  const auto length_at = [&o, longest](const auto& steps) {
    return longest - 2 * steps * power(o.betas.second, steps) / one_minus_power(o.betas.second, steps);
  };
  const auto rectified = [length_at](const auto& steps) { return is_above(length_at(steps), 5); };
  const auto plain_rate = [&](const auto& steps) { return o.lr / one_minus_power(o.betas.first, steps); };
  const auto rectified_rate = [&o, longest, length_at, plain_rate](const auto& steps) {
    const auto length = at_least(length_at(steps), 5);  // the root below exists where it is not used, too
    const auto rectifier = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
    return plain_rate(steps) * root(rectifier * one_minus_power(o.betas.second, steps));
  };
  // Both ways are computed and one is chosen: the step at which it changes compiles nothing.
  const Tensor scale = sqrt(square) + coefficient(floor_of_root, state, [&] { return o.eps; });
  const Tensor step = where(coefficient_of_steps(adaptive, state, rectified) > 0,
                            mean / scale * coefficient_of_steps(adaptive_rate, state, rectified_rate),
                            mean * coefficient_of_steps(rate, state, plain_rate));
  state.parameter.copy_(parameter - step);
}

}  // namespace russet::optim
