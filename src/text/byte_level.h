#pragma once
// GPT-2's pre-tokenizer: pieces of text by the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#include <cstddef>
#include <string_view>

#include "text/characters.h"

namespace russet::text {

class ByteLevelSplitter {
 public:
  /// The bytes of the piece at the start of `text`, which is valid UTF-8 and not empty.
  std::size_t piece_length(std::string_view text) const;

 private:
  enum class Kind : std::uint8_t { space, letter, number, other };
  Kind kind_of(char32_t character) const;
  std::size_t run_length(std::string_view text, std::size_t begin, Kind kind) const;
  std::size_t space_length(std::string_view text) const;

  const CharacterTable& table_ = CharacterTable::get();
};

}  // namespace russet::text
