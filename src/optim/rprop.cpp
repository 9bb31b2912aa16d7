// Rprop.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/optim/rprop.h>

namespace russet::optim {

void RpropOptions::check(const std::vector<Tensor>&) const {
  if (0 < etas.first && etas.first < 1 && 1 < etas.second) return;
  throw ValueError(fmt::format("Rprop: etas are {} and {}: one between 0 and 1 and one above 1 are wanted", etas.first,
                               etas.second));
}

std::span<const char* const> Rprop::state_names() const {
  static constexpr const char* names[] = {"prev", "step_size"};
  return names;
}

void Rprop::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { prev, step_size };
  enum : std::size_t { shrink = own, grow, smallest, largest };
  const RpropOptions& o = group_options(group);
  const Tensor gradient = descent(state, given, o.maximize, 0);
  Tensor& before = kept(state, prev);
  Tensor& size = kept(state, step_size, o.lr);
  const Tensor agreement = gradient * before;
  const Tensor turned = agreement < 0;
  const Tensor changed =
      where(turned, size * coefficient(shrink, state, [&] { return o.etas.first; }),
            where(agreement > 0, size * coefficient(grow, state, [&] { return o.etas.second; }), size));
  size.copy_(clamp(changed, coefficient(smallest, state, [&] { return o.step_sizes.first; }),
                   coefficient(largest, state, [&] { return o.step_sizes.second; })));
  before.copy_(where(turned, 0, gradient));
  state.parameter.sub_(sign(before) * size);
}

}  // namespace russet::optim
