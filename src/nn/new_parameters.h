#pragma once
// Parameters of new modules, where and of the type that NewModules says.
#include <russet/functional/creation.h>
#include <russet/nn/init.h>
#include <russet/nn/module.h>

#include <cmath>

namespace russet::nn {

inline Tensor new_zeros(const Shape& sizes) { return zeros(sizes, NewModules::options()); }
inline Tensor new_ones(const Shape& sizes) { return ones(sizes, NewModules::options()); }

inline Tensor new_uniform(const Shape& sizes, double bound) {
  const Tensor made = empty(sizes, NewModules::options());
  init::uniform_(made, -bound, bound);
  return made;
}

/// The bound of PyTorch's default: kaiming_uniform_ with a = sqrt(5), which is 1 / sqrt(fan_in).
inline double default_bound(std::int64_t fan_in) { return fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0; }

}  // namespace russet::nn
