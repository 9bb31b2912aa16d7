// Stochastic gradient descent.
#include <russet/functional/elementwise.h>
#include <russet/optim/sgd.h>

#include "steps.h"

namespace russet::optim {

void SGDOptions::check(const std::vector<Tensor>&) const {
  if (!nesterov || (momentum > 0 && dampening == 0)) return;
  throw ValueError("SGD: nesterov takes a momentum above 0 and a dampening of 0");
}

std::span<const char* const> SGD::state_names() const {
  static constexpr const char* names[] = {"momentum_buffer"};
  return names;
}

void SGD::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { inertia = own, share };
  const SGDOptions& o = group_options(group);
  Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  if (o.momentum != 0) {
    Tensor& buffer = kept(state, 0);
    const Tensor& momentum = coefficient(inertia, state, [&] { return o.momentum; });
    Tensor entering = gradient;
    if (o.dampening != 0) {
      // The first gradient enters whole: the buffer's zeros add nothing to it.
      const auto part = [&](const auto& steps) { return 1 - is_above(steps, 1) * o.dampening; };
      entering = gradient * coefficient_of_steps(share, state, part);
    }
    buffer.copy_(buffer * momentum + entering);
    gradient = o.nesterov ? gradient + buffer * momentum : buffer;
  }
  state.parameter.sub_(gradient * coefficient(rate, state, [&] { return o.lr; }));
}

}  // namespace russet::optim
