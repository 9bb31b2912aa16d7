#include "text/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "text/character_table.h"

namespace russet::text {
namespace {

constexpr std::size_t all_characters = 0x110000;

/// Lower cases that came with Unicode 16 and 17, which an older utf8proc lacks: of `first` to `last` the one `distance`
/// above.
struct LowerCase {
  char32_t first;
  char32_t last;
  std::int32_t distance;
};
constexpr LowerCase later_lower_cases[] = {
    {0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
    {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B},
};

std::int32_t number_of(char32_t character) { return static_cast<std::int32_t>(character); }

void append_decomposition(std::u32string& text, char32_t character) {
  constexpr int longest = 4;  // of all canonical decompositions
  utf8proc_int32_t parts[longest];
  int last_boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(number_of(character), parts, longest, UTF8PROC_DECOMPOSE, &last_boundary);
  for (utf8proc_ssize_t i = 0; i < count; ++i) text += static_cast<char32_t>(parts[i]);
}

}  // namespace

CharacterTable::CharacterTable() : classes_(all_characters) {
  const auto set = [this](CharacterClass bit, std::span<const CharacterRange> ranges) {
    for (const auto [first, last] : ranges) {
      for (char32_t character = first; character <= last; ++character) classes_[character] |= bit;
    }
  };
  set(removed, removed_characters);
  set(mark, mark_characters);
  set(punctuation, punctuation_characters);
  set(letter, letter_characters);
  set(number, number_characters);
  set(decomposed, decomposed_characters);
  set(reordered, reordered_characters);
  set(word_letter, word_characters);
}

const CharacterTable& CharacterTable::get() {
  static const CharacterTable table;
  return table;
}

void decompose(std::u32string& text) {
  const CharacterTable& table = CharacterTable::get();
  const auto has = [&](unsigned classes) {
    return std::any_of(text.begin(), text.end(), [&](char32_t c) { return table.is(c, classes); });
  };
  if (has(decomposed)) {
    std::u32string parts;
    for (const char32_t character : text) {
      if (table.is(character, decomposed)) {
        append_decomposition(parts, character);
      } else {
        parts += character;
      }
    }
    text = std::move(parts);
  }
  // Marks that follow each other are put in the order of their combining classes.
  const auto rank = [](char32_t c) { return utf8proc_get_property(number_of(c))->combining_class; };
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find_if(begin, text.end(), [&](char32_t c) { return !table.is(c, reordered); });
    if (end - begin > 1) std::stable_sort(begin, end, [&](char32_t a, char32_t b) { return rank(a) < rank(b); });
    begin = end == text.end() ? end : end + 1;
  }
}

void append_lower(std::u32string& text, char32_t character) {
  if (character < 0x80) {
    text += character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
    return;
  }
  constexpr char32_t i_with_dot = 0x130;
  constexpr char32_t dot_above = 0x307;
  if (character == i_with_dot) {
    text += {U'i', dot_above};
    return;
  }
  for (const auto [first, last, distance] : later_lower_cases) {
    if (character >= first && character <= last) {
      text += static_cast<char32_t>(number_of(character) + distance);
      return;
    }
  }
  text += static_cast<char32_t>(utf8proc_tolower(number_of(character)));
}

}  // namespace russet::text
