// BERT's encoder works on chunks: what lies between plain spaces and ASCII punctuation. Nothing that the normalizer or
// the pre-tokenizer does reaches across these, so a chunk has the same ids wherever it stands, and its ids are kept.
#include <array>

#include "text/encoder.h"

namespace russet::text {
namespace {

enum class ByteKind : std::uint8_t { alphanumeric, space, punctuation, other };

constexpr std::array<ByteKind, 256> byte_kinds = [] {
  std::array<ByteKind, 256> kinds{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    // Of ASCII's white space these four are kept by clean_text; it removes the others, which then join what they part.
    const bool space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    kinds[byte] = space                         ? ByteKind::space
                  : is_ascii_alphanumeric(byte) ? ByteKind::alphanumeric
                  : is_ascii_punctuation(byte)  ? ByteKind::punctuation
                                                : ByteKind::other;
  }
  return kinds;
}();

ByteKind kind_of(char byte) { return byte_kinds[static_cast<unsigned char>(byte)]; }

class BertEncoder final : public Encoder {
 public:
  BertEncoder(const BertNormalizerOptions& normalizer, WordPiece model)
      : options_(normalizer), model_(std::move(model)) {}

  std::string normalize(std::string_view text) const override {
    std::u32string characters;
    append_characters(text, characters);
    text::normalize(characters, options_);
    std::string normalized;
    for (const char32_t character : characters) append_utf8(normalized, character);
    return normalized;
  }

  void encode(std::string_view text, bool normalized, WordCache& cache, std::vector<TokenId>& ids) const override {
    const auto tokenize = [&](std::string_view chunk, std::vector<TokenId>& found) {
      encode_chunk(chunk, normalized, found);
    };
    for (std::size_t at = 0; at < text.size();) {
      const ByteKind kind = kind_of(text[at]);
      const std::size_t begin = at++;
      if (kind == ByteKind::space) continue;
      if (kind != ByteKind::punctuation) {
        while (at < text.size() && is_inside_chunk(kind_of(text[at]))) ++at;
      }
      cache.append(text.substr(begin, at - begin), ids, tokenize);
    }
  }

 private:
  static bool is_inside_chunk(ByteKind kind) { return kind == ByteKind::alphanumeric || kind == ByteKind::other; }

  void encode_chunk(std::string_view chunk, bool normalized, std::vector<TokenId>& ids) const {
    std::u32string characters;
    append_characters(chunk, characters);
    if (!normalized) text::normalize(characters, options_);
    for_each_bert_word(characters, table_, [&](std::string_view word) { model_.tokenize(word, ids); });
  }

  const CharacterTable& table_ = CharacterTable::get();
  BertNormalizerOptions options_;
  WordPiece model_;
};

}  // namespace

std::unique_ptr<Encoder> make_bert_encoder(const BertNormalizerOptions& normalizer, WordPiece model) {
  return std::make_unique<BertEncoder>(normalizer, std::move(model));
}

}  // namespace russet::text
