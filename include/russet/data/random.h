#pragma once
// Random: numbers that depend on a seed, a purpose and two positions only, so that a sample's augmentation is the
// same on whatever thread it runs.
#include <russet/philox.h>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace russet::data {

class Random {
 public:
  /// Positions of one purpose are below 2^61.
  enum class Purpose : std::uint8_t { augmentation = 0, mixing = 1, order = 2, split = 4, content = 6 };

  /// Word i is word i % 4 of Philox at key `seed`, block i / 4 + epoch * 2^32, offset position + purpose * 2^61.
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t epoch = 0, std::uint64_t position = 0)
      : seed_(seed), offset_(position | static_cast<std::uint64_t>(purpose) << 61), block_(epoch << 32) {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = philox(seed_, offset_, block_++);
      used_ = 0;
    }
    return words_[static_cast<std::size_t>(used_++)];
  }
  /// In [0, 1).
  double uniform() { return word() * 0x1p-32; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In [0, count); count at least 1.
  std::uint64_t below(std::uint64_t count) {
    const std::uint64_t uneven = (std::numeric_limits<std::uint64_t>::max() - count + 1) % count;
    std::uint64_t bits = 0;
    do {
      bits = std::uint64_t{word()} << 32;
      bits |= word();
    } while (bits < uneven);
    return bits % count;
  }
  bool chance(double probability) { return uniform() < probability; }

  /// Fisher and Yates, in Durstenfeld's form (CACM 7, 1964).
  void shuffle(std::span<std::int64_t> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t offset_;
  std::uint64_t block_;
  std::array<std::uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace russet::data
