#pragma once
// Encoder: normalizer, pre-tokenizer and model together: ids of text that holds no added token.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/bert_normalizer.h"
#include "text/bpe.h"
#include "text/word_cache.h"
#include "text/word_piece.h"

namespace russet::text {

class Encoder {
 public:
  Encoder() = default;
  virtual ~Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// What the normalizer makes of valid UTF-8.
  virtual std::string normalize(std::string_view text) const = 0;
  /// Appends the ids of valid UTF-8. A cache is used with one encoder and one value of `normalized` alone.
  virtual void encode(std::string_view text, bool normalized, WordCache& cache, std::vector<TokenId>& ids) const = 0;
};

/// BertNormalizer, BertPreTokenizer, WordPiece.
std::unique_ptr<Encoder> make_bert_encoder(const BertNormalizerOptions& normalizer, WordPiece model);

struct ByteLevelOptions {
  bool add_prefix_space = false;
  bool use_regex = true;
};

/// No normalizer, ByteLevel, BPE.
std::unique_ptr<Encoder> make_byte_level_encoder(const ByteLevelOptions& options, Bpe model);

}  // namespace russet::text
