#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace russet::text {
namespace {

char32_t character_before(std::string_view text, std::size_t at) {
  do {
    --at;
  } while ((text[at] & 0xC0) == 0x80);
  return next_character(text, at);
}

char32_t character_at(std::string_view text, std::size_t at) { return next_character(text, at); }

std::size_t skip_spaces_left(std::string_view text, std::size_t at) {
  while (at > 0 && is_space(character_before(text, at))) {
    do {
      --at;
    } while ((text[at] & 0xC0) == 0x80);
  }
  return at;
}

std::size_t skip_spaces_right(std::string_view text, std::size_t at) {
  for (std::size_t next = at; next < text.size(); at = next) {
    if (!is_space(next_character(text, next))) break;
  }
  return at;
}

}  // namespace

bool AddedTokenMatcher::add(const AddedToken& token, std::string content) {
  std::vector<std::size_t>& same_start = by_first_byte_[static_cast<unsigned char>(content[0])];
  const auto shorter = [this](std::size_t length, std::size_t i) { return length > patterns_[i].content.size(); };
  if (std::any_of(same_start.begin(), same_start.end(), [&](std::size_t i) { return patterns_[i].content == content; }))
    return false;
  same_start.insert(std::upper_bound(same_start.begin(), same_start.end(), content.size(), shorter), patterns_.size());
  patterns_.push_back({std::move(content), token});
  return true;
}

const AddedTokenMatcher::Pattern* AddedTokenMatcher::match(std::string_view text, std::size_t at) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(patterns_[i].content)) return &patterns_[i];
  }
  return nullptr;
}

bool AddedTokenMatcher::touches_word(std::string_view text, std::size_t begin, std::size_t end) const {
  const CharacterTable& table = CharacterTable::get();
  return (begin > 0 && table.is(character_before(text, begin), word_letter)) ||
         (end < text.size() && table.is(character_at(text, end), word_letter));
}

std::vector<TextPart> AddedTokenMatcher::split(std::string_view text) const {
  std::vector<TextPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Pattern* const found = match(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at += found->content.size();
    if (found->token.single_word && touches_word(text, begin, end)) continue;
    if (found->token.lstrip) begin = std::max(done, skip_spaces_left(text, begin));
    if (found->token.rstrip) end = skip_spaces_right(text, end);
    if (done < begin) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, end - begin), found->token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace russet::text
