#include "base/philox.h"

#include <cmath>

namespace russet::base {

float normal_at(std::uint64_t seed, std::uint64_t offset, std::uint64_t position) {
  constexpr double two_pi = 6.283185307179586476925;
  const auto words = philox(seed, offset, position / 2);
  const std::uint64_t first = 2 * (position % 2);
  const double u1 = (static_cast<double>(words[first] >> 8) + 1) * 0x1p-24;
  const double u2 = static_cast<double>(words[first + 1] >> 8) * 0x1p-24;
  return static_cast<float>(std::sqrt(-2 * std::log(u1)) * std::cos(two_pi * u2));
}

}  // namespace russet::base
