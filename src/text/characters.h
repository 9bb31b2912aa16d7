#pragma once
// What Unicode says of characters, in the versions that Hugging Face's tokenizers follow.
//
// Their crates each carry a table of their own, from Unicode 8 to 17, and utf8proc is of another version on each
// system. So that ids are the same everywhere, membership in a class is a table here (character_table.h), made from
// what `tokenizers` answers for each character. utf8proc says what does not change between versions once a character
// has it: its decomposition, its combining class, its lower case.
#include <cstdint>
#include <string>
#include <vector>

namespace russet::text {

struct CharacterRange {
  char32_t first;
  char32_t last;
};

enum CharacterClass : std::uint8_t {
  removed = 1,       // by clean_text: control, format and private characters, NUL and U+FFFD
  mark = 2,          // nonspacing, which strip_accents removes
  punctuation = 4,   // a word by itself for BERT
  letter = 8,        // \p{L} of GPT-2's pattern
  number = 16,       // \p{N}
  decomposed = 32,   // has a canonical decomposition
  reordered = 64,    // has a combining class above 0
  word_letter = 128  // \w, which an added token that is a single word does not touch
};

class CharacterTable {
 public:
  /// The only one; made at its first use.
  static const CharacterTable& get();
  bool is(char32_t character, unsigned classes) const { return (classes_[character] & classes) != 0; }

 private:
  CharacterTable();
  std::vector<std::uint8_t> classes_;
};

/// Unicode's property White_Space.
constexpr bool is_space(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

constexpr bool is_ascii_alphanumeric(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
constexpr bool is_ascii_punctuation(char32_t c) { return c > ' ' && c < 0x7F && !is_ascii_alphanumeric(c); }

/// The normalization form D of `text`.
void decompose(std::u32string& text);

/// Appends the lower case of a character, which may be two.
void append_lower(std::u32string& text, char32_t character);

}  // namespace russet::text
