// NAdam.
#include <russet/functional/elementwise.h>
#include <russet/optim/nadam.h>

#include "steps.h"

namespace russet::optim {

Shape NAdam::state_shape(std::size_t place, const Tensor& parameter) const {
  return place == 0 ? Shape{} : parameter.sizes();
}

std::span<const char* const> NAdam::state_names() const {
  static constexpr const char* names[] = {"mu_product", "exp_avg", "exp_avg_sq"};
  return names;
}

void NAdam::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { mu_product, exp_avg, exp_avg_sq };
  enum : std::size_t { new_share = own, new_square, correction, floor_of_root, mu_now, mu_next, gradient_rate };
  const NAdamOptions& o = group_options(group);
  const auto mu = [&](const auto& steps) { return o.betas.first * (1 - 0.5 * power(0.96, steps * o.momentum_decay)); };
  Tensor parameter = state.parameter.detach();
  const Tensor gradient = descent(state, given, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay && o.weight_decay != 0) {
    parameter = parameter * coefficient(decay, state, [&] { return 1 - o.lr * o.weight_decay; });
  }
  Tensor& product = kept(state, mu_product, 1);
  product.copy_(product * coefficient_of_steps(mu_now, state, mu));
  const Tensor mean =
      average(kept(state, exp_avg), gradient, coefficient(new_share, state, [&] { return 1 - o.betas.first; }));
  const Tensor square = average(kept(state, exp_avg_sq), gradient * gradient,
                                coefficient(new_square, state, [&] { return 1 - o.betas.second; }));
  const auto square_correction = [&](const auto& steps) { return 1 / root(one_minus_power(o.betas.second, steps)); };
  const Tensor scale = sqrt(square) * coefficient_of_steps(correction, state, square_correction) +
                       coefficient(floor_of_root, state, [&] { return o.eps; });
  const Tensor next = coefficient_of_steps(mu_next, state, [mu](const auto& steps) { return mu(steps + 1); });
  const auto share_of_rate = [&, mu](const auto& steps) { return o.lr * (1 - mu(steps)); };
  const Tensor of_gradient = coefficient_of_steps(gradient_rate, state, share_of_rate) / (1 - product);
  const Tensor of_mean = next * coefficient(rate, state, [&] { return o.lr; }) / (1 - product * next);
  state.parameter.copy_(parameter - (gradient * of_gradient + mean * of_mean) / scale);
}

}  // namespace russet::optim
