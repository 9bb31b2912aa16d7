// RMSprop.
#include <russet/functional/elementwise.h>
#include <russet/optim/rmsprop.h>

namespace russet::optim {

std::span<const char* const> RMSprop::state_names() const {
  static constexpr const char* names[] = {"square_avg", "grad_avg", "momentum_buffer"};
  return names;
}

void RMSprop::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { square_avg, grad_avg, momentum_buffer };
  enum : std::size_t { share = own, floor_of_root, inertia };
  const RMSpropOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  const Tensor& new_share = coefficient(share, state, [&] { return 1 - o.alpha; });
  Tensor square = average(kept(state, square_avg), gradient * gradient, new_share);
  if (o.centered) {
    const Tensor mean = average(kept(state, grad_avg), gradient, new_share);
    square = square - mean * mean;
  }
  Tensor step = gradient / (sqrt(square) + coefficient(floor_of_root, state, [&] { return o.eps; }));
  if (o.momentum > 0) {
    Tensor& buffer = kept(state, momentum_buffer);
    buffer.copy_(buffer * coefficient(inertia, state, [&] { return o.momentum; }) + step);
    step = buffer;
  }
  state.parameter.sub_(step * coefficient(rate, state, [&] { return o.lr; }));
}

}  // namespace russet::optim
