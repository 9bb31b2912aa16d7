#pragma once
// WordPiece: the longest token that a word begins with, then the longest that the rest continues with, and so on.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace russet::text {

struct WordPieceOptions {
  TokenId unknown = no_token;
  std::string continuing_subword_prefix = "##";
  std::int64_t max_input_chars_per_word = 100;
};

class WordPiece {
 public:
  /// `vocabulary` must outlive it.
  WordPiece(const Vocabulary& vocabulary, const WordPieceOptions& options);
  /// Appends the ids of a word, or the one of the unknown token.
  void tokenize(std::string_view word, std::vector<TokenId>& ids) const;

 private:
  struct Match {
    TokenId id = no_token;
    std::size_t bytes = 0;
  };
  Match longest_match(const TokenTable& table, std::string_view text) const;

  TokenTable starts_;
  TokenTable continuations_;  // without the prefix
  std::size_t longest_ = 0;   // bytes of the longest token
  TokenId unknown_;
  std::int64_t max_chars_;
};

}  // namespace russet::text
