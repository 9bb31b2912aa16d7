#pragma once
#include <cstdint>

namespace russet::gpu {

/// The divisor of divide() in math.metal: of any number of 32 bits, by at most 2^31.
struct Divisor {
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;

  explicit Divisor(std::uint64_t size) {
    while ((std::uint64_t{1} << shift) < size) ++shift;
    const std::uint64_t rest = (std::uint64_t{1} << shift) - size;
    multiplier = static_cast<std::uint32_t>((rest << 32) / size + 1);
  }
};

}  // namespace russet::gpu
