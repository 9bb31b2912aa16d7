#include "text/decoder.h"

#include <optional>
#include <string_view>
#include <unordered_map>

#include "text/bpe.h"
#include "text/utf8.h"

namespace russet::text {
namespace {

struct Replacement {
  std::string_view from;
  std::string_view to;
};
/// As Hugging Face's cleanup, in this order.
constexpr Replacement replacements[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

void replace_all(std::string& text, const Replacement& replacement) {
  std::size_t at = 0;
  while ((at = text.find(replacement.from, at)) != std::string::npos) {
    text.replace(at, replacement.from.size(), replacement.to);
    at += replacement.to.size();
  }
}

std::string decode_word_piece(const Decoder& decoder, const std::vector<std::string>& tokens) {
  std::string text;
  bool first = true;
  for (std::string token : tokens) {
    if (!first && token.starts_with(decoder.prefix)) {
      token.erase(0, decoder.prefix.size());
    } else if (!first) {
      token.insert(0, " ");
    }
    first = false;
    if (decoder.cleanup) {
      for (const Replacement& replacement : replacements) replace_all(token, replacement);
    }
    text += token;
  }
  return text;
}

/// The bytes that the characters of a token stand for; nothing if one is not of the alphabet.
std::optional<std::string> bytes_of(const std::string& token) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> map;
    for (std::size_t byte = 0; byte < 256; ++byte) map.emplace(byte_alphabet()[byte], static_cast<char>(byte));
    return map;
  }();
  std::string found;
  for (std::size_t at = 0; at < token.size();) {
    const auto byte = bytes.find(next_character(token, at));
    if (byte == bytes.end()) return std::nullopt;
    found += byte->second;
  }
  return found;
}

std::string decode_byte_level(const std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of(token).value_or(token);
  std::string buffer;
  return std::string(with_replacements(bytes, buffer));
}

std::string decode_with_spaces(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text.append(&token == &tokens.front() ? "" : " ").append(token);
  return text;
}

}  // namespace

std::string decode(const Decoder& decoder, const std::vector<std::string>& tokens) {
  switch (decoder.kind) {
    case Decoder::Kind::word_piece: return decode_word_piece(decoder, tokens);
    case Decoder::Kind::byte_level: return decode_byte_level(tokens);
    case Decoder::Kind::spaces: break;
  }
  return decode_with_spaces(tokens);
}

}  // namespace russet::text
