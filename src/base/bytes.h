#pragma once
// Arrays of bytes.
#include <cstddef>
#include <cstring>
#include <span>

namespace russet::base {

/// As std::ranges::equal, which compares std::byte one by one.
inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace russet::base
