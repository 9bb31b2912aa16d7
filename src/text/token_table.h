#pragma once
// TokenTable: ids of strings that others own. Finds the ids of all beginnings of a string with one hash of it.
#include <cstdint>
#include <string_view>
#include <vector>

namespace russet::text {

using TokenId = std::int32_t;
inline constexpr TokenId no_token = -1;

/// A hash that grows with its string (FNV-1a).
class GrowingHash {
 public:
  void add(char byte) { state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3; }
  std::uint64_t value() const { return state_ ^ state_ >> 32; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325;
};

inline std::uint64_t growing_hash_of(std::string_view text) {
  GrowingHash hash;
  for (const char byte : text) hash.add(byte);
  return hash.value();
}

class TokenTable {
 public:
  /// Returns false, and changes nothing, if the token is there. The token's memory must outlive the table.
  bool add(std::string_view token, TokenId id) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place_of(growing_hash_of(token), token)];
    if (slot.id != no_token) return false;
    slot = {token, id};
    ++count_;
    return true;
  }
  TokenId find(std::string_view token) const { return find(growing_hash_of(token), token); }
  TokenId find(std::uint64_t hash, std::string_view token) const {
    return slots_.empty() ? no_token : slots_[place_of(hash, token)].id;
  }
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::string_view token;
    TokenId id = no_token;
  };
  /// Where the token is, or where it would be.
  std::size_t place_of(std::uint64_t hash, std::string_view token) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = hash & mask;
    while (slots_[place].id != no_token && slots_[place].token != token) place = (place + 1) & mask;
    return place;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id != no_token) slots_[place_of(growing_hash_of(slot.token), slot.token)] = slot;
    }
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace russet::text
