#pragma once
// What a kernel finds wrong with the indices that it is given, and how those that wait for it hear of that.
#include <cstdint>
#include <string>

namespace russet::gpu {

/// A launch has a word of memory for it, which holds `none` before and after it the smallest number of an index that
/// names no row.
struct IndexCheck {
  static constexpr std::uint32_t none = 0xffffffffU;

  std::string op;
  std::int64_t count = 0;  // indices
  std::int64_t rows = 0;

  /// What an IndexError says of the word.
  std::string message(std::uint32_t word) const;
};

}  // namespace russet::gpu
