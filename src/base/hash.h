#pragma once
// Hashes of several numbers.
#include <russet/shape.h>
#include <cstdint>

namespace russet::base {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash;
}

inline std::uint64_t mix(std::uint64_t hash, const Dims& dims) {
  for (const std::int64_t value : dims) hash = mix(hash, static_cast<std::uint64_t>(value));
  return mix(hash, dims.size());
}

}  // namespace russet::base
