// LARS.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/reduction.h>
#include <russet/optim/lars.h>

namespace russet::optim {

std::span<const char* const> LARS::state_names() const {
  static constexpr const char* names[] = {"momentum_buffer"};
  return names;
}

void LARS::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { inertia = own, trust };
  const LARSOptions& o = group_options(group);
  const bool adapts = state.parameter.dim() > 1 || !o.exclude_bias_and_norm;
  const Tensor gradient = descent(state, given, o.maximize, adapts ? o.weight_decay : 0);
  Tensor step = gradient * coefficient(rate, state, [&] { return o.lr; });
  if (adapts) {
    const Tensor size = norm(state.parameter.detach());
    const Tensor slope = norm(gradient);
    const Tensor ratio = coefficient(trust, state, [&] { return o.trust_coefficient; }) * size / slope;
    step = step * where(size > 0, where(slope > 0, ratio, 1), 1);
  }
  if (o.momentum != 0) {
    const Tensor& momentum = coefficient(inertia, state, [&] { return o.momentum; });
    Tensor& buffer = kept(state, 0);
    buffer.copy_(buffer * momentum + step);
    step = o.nesterov ? buffer * momentum + step : buffer;
  }
  state.parameter.sub_(step);
}

}  // namespace russet::optim
