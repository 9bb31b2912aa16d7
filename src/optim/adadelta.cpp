// Adadelta.
#include <russet/functional/elementwise.h>
#include <russet/optim/adadelta.h>

namespace russet::optim {

std::span<const char* const> Adadelta::state_names() const {
  static constexpr const char* names[] = {"square_avg", "acc_delta"};
  return names;
}

void Adadelta::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { square_avg, acc_delta };
  enum : std::size_t { share = own, floor_of_root };
  const AdadeltaOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  const Tensor& new_share = coefficient(share, state, [&] { return 1 - o.rho; });
  const Tensor& eps = coefficient(floor_of_root, state, [&] { return o.eps; });
  const Tensor squares = average(kept(state, square_avg), gradient * gradient, new_share);
  const Tensor delta = sqrt(kept(state, acc_delta) + eps) / sqrt(squares + eps) * gradient;
  average(kept(state, acc_delta), delta * delta, new_share);
  state.parameter.sub_(delta * coefficient(rate, state, [&] { return o.lr; }));
}

}  // namespace russet::optim
