// Adam and AdamW.
#include <russet/functional/elementwise.h>
#include <russet/optim/adam.h>

#include "steps.h"

namespace russet::optim {

template <class Options>
std::span<const char* const> AdamOf<Options>::state_names() const {
  static constexpr const char* names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return names;
}

template <class Options>
void AdamOf<Options>::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { exp_avg, exp_avg_sq, max_exp_avg_sq };
  enum : std::size_t { new_share = Optimizer::own, keep_square, new_square, correction, floor_of_root };
  const auto number = [&](std::size_t place, const auto& value) -> const Tensor& {
    return this->coefficient(place, state, value);
  };
  const Options& o = this->group_options(group);
  const auto square_correction = [&](const auto& steps) { return 1 / root(one_minus_power(o.betas.second, steps)); };
  const auto step_size = [&](const auto& steps) { return o.lr / one_minus_power(o.betas.first, steps); };
  Tensor parameter = state.parameter.detach();
  const Tensor gradient = this->descent(state, given, o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
  if (o.decoupled_weight_decay && o.weight_decay != 0) {
    parameter = parameter * number(Optimizer::decay, [&] { return 1 - o.lr * o.weight_decay; });
  }
  const Tensor mean =
      this->average(this->kept(state, exp_avg), gradient, number(new_share, [&] { return 1 - o.betas.first; }));
  Tensor& square = this->kept(state, exp_avg_sq);
  square.copy_(square * number(keep_square, [&] { return o.betas.second; }) +
               gradient * gradient * number(new_square, [&] { return 1 - o.betas.second; }));
  Tensor largest = square;
  if (o.amsgrad) {
    largest = this->kept(state, max_exp_avg_sq);
    largest.copy_(maximum(largest, square));
  }
  const Tensor scale = sqrt(largest) * this->coefficient_of_steps(correction, state, square_correction) +
                       number(floor_of_root, [&] { return o.eps; });
  const Tensor& lr = this->coefficient_of_steps(Optimizer::rate, state, step_size);
  state.parameter.copy_(parameter - mean / scale * lr);
}

template class AdamOf<AdamOptions>;
template class AdamOf<AdamWOptions>;

}  // namespace russet::optim
