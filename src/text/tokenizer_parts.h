#pragma once
// What a Tokenizer is made of.
#include <russet/text/tokenizer.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/encoder.h"
#include "text/post_processor.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

namespace russet::text {

struct Tokenizer::Parts {
  Parts() = default;
  /// Adds a token and gives it an id: its id in the vocabulary, else the next free one. The encoder must be there.
  /// Returns no_token if another added token looks for the same text.
  TokenId add(AddedToken token);

  Vocabulary vocabulary;
  std::unique_ptr<Encoder> encoder;  // reads the vocabulary
  PostProcessor post_processor;
  Decoder decoder;

  // The added tokens: their ids, what they are in decoded text, and how they are found.
  std::unordered_map<std::string, TokenId> added_ids;
  std::unordered_map<TokenId, std::string> added_texts;
  std::unordered_set<std::string> special;
  std::size_t added_only = 0;            // that the vocabulary lacks
  AddedTokenMatcher matcher;             // in the text as it is
  AddedTokenMatcher normalized_matcher;  // in normalized text

  mutable WordCachePool caches;
};

}  // namespace russet::text
