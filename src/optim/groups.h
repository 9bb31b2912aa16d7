#pragma once
// What the constructors of optimizers share.
#include <fmt/format.h>
#include <russet/optim/optimizer.h>

namespace russet::optim {

template <class Options>
std::vector<std::vector<Tensor>> parameters_of(const std::vector<ParamGroup<Options>>& groups) {
  std::vector<std::vector<Tensor>> parameters;
  for (const ParamGroup<Options>& group : groups) parameters.push_back(group.parameters);
  return parameters;
}

template <class Options>
std::vector<Options> options_of(const std::vector<ParamGroup<Options>>& groups) {
  std::vector<Options> options;
  for (const ParamGroup<Options>& group : groups) options.push_back(group.options);
  return options;
}

inline void require_at_least_zero(const char* optimizer, const char* option, double value) {
  if (value >= 0) return;
  throw ValueError(fmt::format("{}: {} is {}, which is not 0 or more", optimizer, option, value));
}

}  // namespace russet::optim
