#include "text/byte_level.h"

#include "text/utf8.h"

namespace russet::text {
namespace {

constexpr std::string_view contractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

}  // namespace

ByteLevelSplitter::Kind ByteLevelSplitter::kind_of(char32_t character) const {
  if (character < 0x80) {
    if (is_space(character)) return Kind::space;
    if (!is_ascii_alphanumeric(character)) return Kind::other;
    return character <= '9' ? Kind::number : Kind::letter;
  }
  if (is_space(character)) return Kind::space;
  if (table_.is(character, letter)) return Kind::letter;
  return table_.is(character, number) ? Kind::number : Kind::other;
}

/// Where the characters of `kind` end that go on at `begin`.
std::size_t ByteLevelSplitter::run_length(std::string_view text, std::size_t begin, Kind kind) const {
  std::size_t end = begin;
  for (std::size_t next = begin; next < text.size(); end = next) {
    if (kind_of(next_character(text, next)) != kind) break;
  }
  return end;
}

/// All spaces up to the end of the text; else all but the last, which goes with what follows, if there are several.
std::size_t ByteLevelSplitter::space_length(std::string_view text) const {
  const std::size_t end = run_length(text, 0, Kind::space);
  if (end == text.size()) return end;
  std::size_t last = end - 1;
  while ((text[last] & 0xC0) == 0x80) --last;
  return last == 0 ? end : last;
}

std::size_t ByteLevelSplitter::piece_length(std::string_view text) const {
  if (text[0] == '\'') {
    for (const std::string_view contraction : contractions) {
      if (text.starts_with(contraction)) return contraction.size();
    }
  }
  const std::size_t begin = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  std::size_t next = begin;
  const Kind kind = kind_of(next_character(text, next));
  return kind == Kind::space ? space_length(text) : run_length(text, next, kind);
}

}  // namespace russet::text
