// Adafactor.
#include <russet/functional/elementwise.h>
#include <russet/functional/reduction.h>
#include <russet/optim/adafactor.h>

#include "steps.h"

namespace russet::optim {
namespace {

enum StateTensor : std::size_t { row_var, col_var, variance };

Tensor root_mean_square(const Tensor& x) { return sqrt(mean(x * x)); }

}  // namespace

Shape Adafactor::state_shape(std::size_t place, const Tensor& parameter) const {
  Shape shape = parameter.sizes();
  const std::size_t axes = shape.size();
  if (axes > 1 && place == row_var) shape[axes - 1] = 1;
  if (axes > 1 && place == col_var) shape[axes - 2] = 1;
  return shape;
}

std::span<const char* const> Adafactor::state_names() const {
  static constexpr const char* names[] = {"row_var", "col_var", "variance"};
  return names;
}

void Adafactor::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { share = own, relative_rate };
  const AdafactorOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, 0);
  Tensor parameter = state.parameter.detach();
  const Tensor size = clamp_min(root_mean_square(parameter), o.eps.second);
  if (o.weight_decay != 0) parameter = parameter * coefficient(decay, state, [&] { return 1 - o.lr * o.weight_decay; });

  const double least = o.eps.first.value_or(epsilon_of(parameter.dtype()));
  const Tensor& new_share =
      coefficient_of_steps(share, state, [&](const auto& steps) { return power(steps, o.beta2_decay); });
  const Tensor squares = gradient * gradient;
  Tensor estimate;
  if (gradient.dim() > 1) {
    const Tensor rows = average(kept(state, row_var), mean(squares, {-1}, true), new_share);
    const Tensor columns = average(kept(state, col_var), mean(squares, {-2}, true), new_share);
    estimate = rows * columns / clamp_min(mean(rows, {-2}, true), least);
  } else {
    estimate = average(kept(state, variance), squares, new_share);
  }
  const Tensor step = rsqrt(clamp_min(estimate, least * least)) * gradient;
  const Tensor clipped = size / clamp_min(root_mean_square(step) * (1 / o.d), 1);
  const auto relative = [&](const auto& steps) { return at_most(1 / root(steps), o.lr); };
  state.parameter.copy_(parameter - step * (clipped * coefficient_of_steps(relative_rate, state, relative)));
}

}  // namespace russet::optim
