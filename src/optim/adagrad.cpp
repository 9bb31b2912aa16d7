// Adagrad.
#include <russet/functional/elementwise.h>
#include <russet/optim/adagrad.h>

namespace russet::optim {

std::span<const char* const> Adagrad::state_names() const {
  static constexpr const char* names[] = {"sum"};
  return names;
}

void Adagrad::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { floor_of_root = own };
  const AdagradOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, o.weight_decay);
  Tensor& sum = kept(state, 0, o.initial_accumulator_value);
  sum.copy_(sum + gradient * gradient);
  const auto lr = [&](const auto& steps) { return o.lr / (1 + (steps - 1) * o.lr_decay); };
  const Tensor root = sqrt(sum) + coefficient(floor_of_root, state, [&] { return o.eps; });
  state.parameter.sub_(gradient / root * coefficient_of_steps(rate, state, lr));
}

}  // namespace russet::optim
