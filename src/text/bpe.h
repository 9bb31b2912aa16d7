#pragma once
// Byte pair encoding: a word's bytes, whose neighbours are merged, the pair of the lowest rank first.
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocabulary.h"

namespace russet::text {

/// GPT-2's alphabet: for each byte the character that stands for it in vocabularies.
const std::array<char32_t, 256>& byte_alphabet();

struct Merge {
  std::int32_t rank;
  TokenId id;  // of the merged token
};
using Merges = std::unordered_map<std::uint64_t, Merge>;
constexpr std::uint64_t merge_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

struct BpeOptions {
  TokenId unknown = no_token;  // for a byte that has no token; without it such bytes are dropped
  bool fuse_unknown = false;   // one for each run of such bytes
  bool ignore_merges = false;  // a word that is a token is that token
};

class Bpe {
 public:
  /// `vocabulary` must outlive it.
  Bpe(const Vocabulary& vocabulary, Merges merges, const BpeOptions& options);
  /// Appends the ids of a word of any bytes.
  void tokenize(std::string_view word, std::vector<TokenId>& ids) const;

 private:
  struct Symbol;
  std::vector<Symbol> symbols_of(std::string_view word) const;
  void merge(std::vector<Symbol>& symbols) const;

  const Vocabulary& vocabulary_;
  Merges merges_;
  BpeOptions options_;
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace russet::text
