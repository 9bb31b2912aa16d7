// Adamax.
#include <russet/functional/elementwise.h>
#include <russet/optim/adamax.h>

#include "steps.h"

namespace russet::optim {

std::span<const char* const> Adamax::state_names() const {
  static constexpr const char* names[] = {"exp_avg", "exp_inf"};
  return names;
}

void Adamax::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { exp_avg, exp_inf };
  enum : std::size_t { new_share = own, keep_largest, floor_of_size };
  const AdamaxOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  const Tensor mean =
      average(kept(state, exp_avg), gradient, coefficient(new_share, state, [&] { return 1 - o.betas.first; }));
  Tensor& largest = kept(state, exp_inf);
  largest.copy_(maximum(largest * coefficient(keep_largest, state, [&] { return o.betas.second; }),
                        abs(gradient) + coefficient(floor_of_size, state, [&] { return o.eps; })));
  const auto lr = [&](const auto& steps) { return o.lr / one_minus_power(o.betas.first, steps); };
  state.parameter.sub_(mean / largest * coefficient_of_steps(rate, state, lr));
}

}  // namespace russet::optim
