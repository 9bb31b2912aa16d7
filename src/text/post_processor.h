#pragma once
// What comes after the model: truncation, and special tokens around the sequences.
#include <russet/text/tokenizer.h>

#include <string_view>
#include <vector>

#include "text/token_table.h"

namespace russet::text {

/// A piece of a template: the first sequence, the second, or special tokens.
struct TemplatePiece {
  enum class Kind : std::uint8_t { first, second, special };
  Kind kind = Kind::first;
  std::int64_t type_id = 0;
  std::vector<TokenId> ids{};  // of special tokens
};
using Template = std::vector<TemplatePiece>;

/// As TemplateProcessing of Hugging Face's tokenizers; the others are written as templates.
struct PostProcessor {
  Template single{{TemplatePiece::Kind::first, 0, {}}};
  Template pair{{TemplatePiece::Kind::first, 0, {}}, {TemplatePiece::Kind::second, 1, {}}};
};

/// [CLS] A [SEP] B [SEP], B of type 1.
PostProcessor bert_processing(TokenId cls, TokenId sep);
/// <s> A </s> </s> B </s>, all of type 0.
PostProcessor roberta_processing(TokenId cls, TokenId sep);

using Ids = std::vector<TokenId>;

/// Cuts the sequences to what the options allow, and puts them together. `second` is null for one sequence.
Encoding post_process(const PostProcessor& processor, Ids first, Ids* second, const EncodeOptions& options);

}  // namespace russet::text
