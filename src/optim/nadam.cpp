// NAdam.
#include <russet/functional/elementwise.h>
#include <russet/optim/nadam.h>

#include <cmath>

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
  const auto steps = static_cast<double>(state.steps);
  const auto mu = [&](double t) { return o.betas.first * (1 - 0.5 * std::pow(0.96, t * o.momentum_decay)); };
  Tensor parameter = state.parameter.detach();
  const Tensor gradient = descent(state, given, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay && o.weight_decay != 0) {
    parameter = parameter * coefficient(decay, state, 1 - o.lr * o.weight_decay);
  }
  Tensor& product = kept(state, mu_product, 1);
  product.copy_(product * coefficient(mu_now, state, mu(steps)));
  const Tensor mean = average(kept(state, exp_avg), gradient, coefficient(new_share, state, 1 - o.betas.first));
  const Tensor square =
      average(kept(state, exp_avg_sq), gradient * gradient, coefficient(new_square, state, 1 - o.betas.second));
  const double square_correction = 1 - std::pow(o.betas.second, steps);
  const Tensor root = sqrt(square) * coefficient(correction, state, 1 / std::sqrt(square_correction)) +
                      coefficient(floor_of_root, state, o.eps);
  const Tensor next = coefficient(mu_next, state, mu(steps + 1));
  const Tensor of_gradient = coefficient(gradient_rate, state, o.lr * (1 - mu(steps))) / (1 - product);
  const Tensor of_mean = next * coefficient(rate, state, o.lr) / (1 - product * next);
  state.parameter.copy_(parameter - (gradient * of_gradient + mean * of_mean) / root);
}

}  // namespace russet::optim
