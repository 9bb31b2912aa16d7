#include "text/bpe.h"

#include <queue>

#include "text/characters.h"
#include "text/utf8.h"

namespace russet::text {

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = [] {
    std::array<char32_t, 256> characters{};
    char32_t next = 256;  // for bytes that print nothing by themselves
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      characters[byte] = prints ? byte : next++;
    }
    return characters;
  }();
  return alphabet;
}

/// A list over an array: what was merged into its left neighbour is no longer linked.
struct Bpe::Symbol {
  TokenId id;
  std::int32_t previous;
  std::int32_t next;
  bool merged = false;
};

Bpe::Bpe(const Vocabulary& vocabulary, Merges merges, const BpeOptions& options)
    : vocabulary_(vocabulary), merges_(std::move(merges)), options_(options) {
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    std::string token;
    append_utf8(token, byte_alphabet()[byte]);
    byte_ids_[byte] = vocabulary.find(token);
  }
}

std::vector<Bpe::Symbol> Bpe::symbols_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (const char byte : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(byte)];
    const bool unknown = id == no_token;
    const bool left_out = unknown && (options_.unknown == no_token || (options_.fuse_unknown && after_unknown));
    after_unknown = unknown;
    if (left_out) continue;
    const auto place = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({unknown ? options_.unknown : id, place - 1, place + 1});
  }
  if (!symbols.empty()) symbols.back().next = -1;
  return symbols;
}

void Bpe::merge(std::vector<Symbol>& symbols) const {
  struct Candidate {
    std::int32_t rank;
    std::int32_t place;
    TokenId id;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto at = [&](std::int32_t place) -> Symbol& { return symbols[static_cast<std::size_t>(place)]; };
  const auto find = [&](std::int32_t left) {
    const Symbol& symbol = at(left);
    return symbol.next < 0 ? merges_.end() : merges_.find(merge_key(symbol.id, at(symbol.next).id));
  };
  const auto consider = [&](std::int32_t left) {
    const auto found = find(left);
    if (found != merges_.end()) queue.push({found->second.rank, left, found->second.id});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) consider(static_cast<std::int32_t>(i));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.place);
    if (left.merged) continue;
    // One of the two may have been merged with another since. As in Hugging Face's, a pair that makes the same token
    // keeps the place in the queue.
    const auto found = find(best.place);
    if (found == merges_.end() || found->second.id != best.id) continue;
    Symbol& right = at(left.next);
    right.merged = true;
    left.id = best.id;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.place;
    if (left.previous >= 0) consider(left.previous);
    consider(best.place);
  }
}

void Bpe::tokenize(std::string_view word, std::vector<TokenId>& ids) const {
  if (options_.ignore_merges) {
    std::string token;
    for (const char byte : word) append_utf8(token, byte_alphabet()[static_cast<unsigned char>(byte)]);
    const TokenId id = vocabulary_.find(token);
    if (id != no_token) return ids.push_back(id);
  }
  std::vector<Symbol> symbols = symbols_of(word);
  merge(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.merged) ids.push_back(symbol.id);
  }
}

}  // namespace russet::text
