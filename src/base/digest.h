#pragma once
// Digests of texts, for names of files and hash tables.
#include <cstdint>
#include <string>
#include <string_view>

namespace russet::base {

inline constexpr std::uint64_t digest_start = 0xCBF29CE484222325ULL;

/// FNV-1a (Fowler, Noll and Vo), 64 bits. `state`: another start, or the digest of what comes before the text.
constexpr std::uint64_t digest(std::string_view text, std::uint64_t state = digest_start) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return state;
}

/// 32 hexadecimal digits that stand for a text and what else makes the difference, such as who compiles it.
std::string digest_name(std::string_view text, std::string_view maker);

}  // namespace russet::base
