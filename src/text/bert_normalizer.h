#pragma once
// What BERT does to text before it splits it into words: Hugging Face's BertNormalizer and BertPreTokenizer.
#include <string>
#include <string_view>

#include "text/characters.h"
#include "text/utf8.h"

namespace russet::text {

struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};

/// Removes control characters; every white space becomes a plain space.
void clean_text(std::u32string& text);
/// Puts spaces around each CJK ideograph.
void space_chinese_chars(std::u32string& text);
/// Decomposes, and removes the nonspacing marks.
void strip_accents(std::u32string& text);
/// Lower case, character by character.
void lowercase(std::u32string& text);

void normalize(std::u32string& text, const BertNormalizerOptions& options);

/// Calls `use` for each word as UTF-8: white space separates words, a punctuation character is a word.
template <class Use>
void for_each_bert_word(std::u32string_view text, const CharacterTable& table, const Use& use) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) use(std::string_view(word));
    word.clear();
  };
  for (const char32_t character : text) {
    const bool alone = is_ascii_punctuation(character) || table.is(character, punctuation);
    if (alone || is_space(character)) end_word();
    if (!is_space(character)) append_utf8(word, character);
    if (alone) end_word();
  }
  end_word();
}

}  // namespace russet::text
