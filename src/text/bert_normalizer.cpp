#include "text/bert_normalizer.h"

#include <algorithm>

namespace russet::text {
namespace {

/// The blocks that BERT's authors chose; all but a few of Unicode's ideographs.
constexpr CharacterRange chinese_blocks[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
    {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F},
};

bool is_chinese(char32_t character) {
  return std::any_of(std::begin(chinese_blocks), std::end(chinese_blocks), [character](const CharacterRange& block) {
    return character >= block.first && character <= block.last;
  });
}

}  // namespace

void clean_text(std::u32string& text) {
  const CharacterTable& table = CharacterTable::get();
  std::erase_if(text, [&](char32_t character) { return table.is(character, removed); });
  std::replace_if(text.begin(), text.end(), is_space, U' ');
}

void space_chinese_chars(std::u32string& text) {
  if (std::none_of(text.begin(), text.end(), is_chinese)) return;
  std::u32string spaced;
  for (const char32_t character : text) {
    if (is_chinese(character)) {
      spaced += {U' ', character, U' '};
    } else {
      spaced += character;
    }
  }
  text = std::move(spaced);
}

void strip_accents(std::u32string& text) {
  decompose(text);
  const CharacterTable& table = CharacterTable::get();
  std::erase_if(text, [&](char32_t character) { return table.is(character, mark); });
}

void lowercase(std::u32string& text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (const char32_t character : text) append_lower(lower, character);
  text = std::move(lower);
}

void normalize(std::u32string& text, const BertNormalizerOptions& options) {
  if (options.clean_text) clean_text(text);
  if (options.handle_chinese_chars) space_chinese_chars(text);
  if (options.strip_accents) strip_accents(text);
  if (options.lowercase) lowercase(text);
}

}  // namespace russet::text
