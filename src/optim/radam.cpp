// RAdam.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/optim/radam.h>

#include <cmath>

namespace russet::optim {

std::span<const char* const> RAdam::state_names() const {
  static constexpr const char* names[] = {"exp_avg", "exp_avg_sq"};
  return names;
}

void RAdam::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { exp_avg, exp_avg_sq };
  enum : std::size_t { new_share = own, new_square, adaptive, adaptive_rate, floor_of_root };
  const RAdamOptions& o = group_options(group);
  const auto steps = static_cast<double>(state.steps);
  Tensor parameter = state.parameter.detach();
  const Tensor gradient = descent(state, given, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay && o.weight_decay != 0) {
    parameter = parameter * coefficient(decay, state, 1 - o.lr * o.weight_decay);
  }
  const Tensor mean = average(kept(state, exp_avg), gradient, coefficient(new_share, state, 1 - o.betas.first));
  const Tensor square =
      average(kept(state, exp_avg_sq), gradient * gradient, coefficient(new_square, state, 1 - o.betas.second));
  const double square_power = std::pow(o.betas.second, steps);
  const double longest = 2 / (1 - o.betas.second) - 1;
  const double length = longest - 2 * steps * square_power / (1 - square_power);
  const bool rectified = length > 5;
  const double plain_rate = o.lr / (1 - std::pow(o.betas.first, steps));
  const double rectifier = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
  const double rectified_rate = rectified ? plain_rate * std::sqrt(rectifier * (1 - square_power)) : 0;
  // Both ways are computed and one is chosen: the step at which it changes compiles nothing.
  const Tensor root = sqrt(square) + coefficient(floor_of_root, state, o.eps);
  const Tensor step = where(coefficient(adaptive, state, rectified ? 1 : 0) > 0,
                            mean / root * coefficient(adaptive_rate, state, rectified_rate),
                            mean * coefficient(rate, state, plain_rate));
  state.parameter.copy_(parameter - step);
}

}  // namespace russet::optim
