#pragma once
// How tensors take their random numbers from Philox, position by position.
#include <russet/philox.h>
#include <cstdint>

namespace russet::base {

using russet::philox;

/// uniform: position p of a tensor takes word p % 4 of block p / 4 at the operator's offset: 24 bits, in [0, 1).
constexpr float uniform_at(std::uint64_t seed, std::uint64_t offset, std::uint64_t position) {
  return static_cast<float>(philox(seed, offset, position / 4)[position % 4] >> 8) * 0x1p-24F;
}

/// random_bits: position p takes words 2 * (p % 2) and the next of block p / 2; 63 bits, never negative.
constexpr std::int64_t random_bits_at(std::uint64_t seed, std::uint64_t offset, std::uint64_t position) {
  const auto words = philox(seed, offset, position / 2);
  const std::uint64_t first = 2 * (position % 2);
  return static_cast<std::int64_t>(((std::uint64_t{words[first]} << 32) | words[first + 1]) >> 1);
}

/// normal (Box and Muller, 1958): position p takes words 2 * (p % 2) and the next of block p / 2 as u1 in (0, 1] and
/// u2 in [0, 1), the upper 24 bits of each (u1 plus 2^-24): sqrt(-2 log u1) cos(2 pi u2), computed in double and
/// rounded to float32.
float normal_at(std::uint64_t seed, std::uint64_t offset, std::uint64_t position);

}  // namespace russet::base
