#pragma once
// Decoder: tokens back to text.
#include <cstdint>
#include <string>
#include <vector>

namespace russet::text {

struct Decoder {
  enum class Kind : std::uint8_t { spaces, word_piece, byte_level };
  Kind kind = Kind::spaces;
  std::string prefix = "##";  // of word_piece
  bool cleanup = true;        // of word_piece: no spaces before punctuation
};

std::string decode(const Decoder& decoder, const std::vector<std::string>& tokens);

}  // namespace russet::text
