#include "text/word_piece.h"

#include <array>

namespace russet::text {
namespace {

std::int64_t characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

}  // namespace

WordPiece::WordPiece(const Vocabulary& vocabulary, const WordPieceOptions& options)
    : unknown_(options.unknown), max_chars_(options.max_input_chars_per_word) {
  const std::string& prefix = options.continuing_subword_prefix;
  for (const auto& [id, token] : vocabulary.tokens()) {
    if (token.empty()) continue;
    starts_.add(token, id);
    longest_ = std::max(longest_, token.size());
    if (token.size() > prefix.size() && token.starts_with(prefix)) {
      continuations_.add(std::string_view(token).substr(prefix.size()), id);
    }
  }
}

WordPiece::Match WordPiece::longest_match(const TokenTable& table, std::string_view text) const {
  // Tokens are whole characters, so a match ends where a character ends. Longer ones are looked up in parts, from the
  // longest: few tokens are longer than one part.
  constexpr std::size_t part = 32;
  std::array<std::uint64_t, part> hashes;
  Match longest;
  GrowingHash hash;
  const std::size_t limit = std::min(text.size(), longest_);
  for (std::size_t begin = 0; begin < limit; begin += part) {
    const std::size_t count = std::min(part, limit - begin);
    for (std::size_t i = 0; i < count; ++i) {
      hash.add(text[begin + i]);
      hashes[i] = hash.value();
    }
    for (std::size_t i = count; i-- > 0;) {
      const TokenId id = table.find(hashes[i], text.substr(0, begin + i + 1));
      if (id == no_token) continue;
      longest = {id, begin + i + 1};
      break;
    }
  }
  return longest;
}

void WordPiece::tokenize(std::string_view word, std::vector<TokenId>& ids) const {
  if (static_cast<std::int64_t>(word.size()) > max_chars_ && characters_in(word) > max_chars_) {
    ids.push_back(unknown_);
    return;
  }
  const std::size_t first = ids.size();
  for (std::size_t done = 0; done < word.size();) {
    const Match match = longest_match(done == 0 ? starts_ : continuations_, word.substr(done));
    if (match.id == no_token) {
      ids.resize(first);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(match.id);
    done += match.bytes;
  }
}

}  // namespace russet::text
