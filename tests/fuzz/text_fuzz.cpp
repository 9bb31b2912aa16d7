// Any bytes are text: they have ids, the same a second time, and the text of byte-level ids is what was read.
#include <russet/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/bpe.h"
#include "text/utf8.h"

namespace {

using russet::text::Tokenizer;

Tokenizer word_piece() {
  constexpr std::string_view vocab = "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n##b\nab\n.\n\u00E9\n\u1100\n##\u1161\n";
  return Tokenizer::from_vocab_txt(std::as_bytes(std::span(vocab)), "vocab.txt");
}

Tokenizer byte_level() {
  std::string vocab = "{";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::string token;
    russet::text::append_utf8(token, russet::text::byte_alphabet()[byte]);
    if (token == "\"" || token == "\\") token.insert(0, "\\");
    vocab += "\"" + token + "\": " + std::to_string(byte) + ", ";
  }
  vocab += R"("ab": 256, "aba": 257})";
  constexpr std::string_view merges = "a b\nab a\n";
  return Tokenizer::from_vocab_and_merges(std::as_bytes(std::span(vocab)), "vocab.json",
                                          std::as_bytes(std::span(merges)), "merges.txt");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer bert = word_piece();
  static const Tokenizer gpt = byte_level();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ids = bert.encode(text).ids;
  if (ids != bert.encode(text).ids || ids.size() < 2) __builtin_trap();
  bert.decode(ids);
  std::string buffer;
  if (gpt.decode(gpt.encode(text).ids) != russet::text::with_replacements(text, buffer)) __builtin_trap();
  return 0;
}
