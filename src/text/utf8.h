#pragma once
// UTF-8: reading, writing, and replacing what is no UTF-8.
#include <cstddef>
#include <string>
#include <string_view>

namespace russet::text {

inline constexpr char32_t replacement_character = 0xFFFD;

struct ScannedCharacter {
  std::size_t bytes;
  bool valid;
};

/// The character at the start of `text`, or the bytes there that one replacement character stands for: the longest
/// beginning of a character, or one byte (Unicode, chapter 3.9, "U+FFFD Substitution of Maximal Subparts"). Python's
/// and Rust's decoders do the same.
inline ScannedCharacter scan_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte rules out long forms, surrogates, and what lies above U+10FFFF.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

/// The character at `at` of valid UTF-8; moves `at` behind it.
inline char32_t next_character(std::string_view text, std::size_t& at) {
  const auto next = [&] { return static_cast<char32_t>(static_cast<unsigned char>(text[at++])); };
  const char32_t lead = next();
  if (lead < 0x80) return lead;
  if (lead < 0xE0) return (lead & 0x1F) << 6 | (next() & 0x3F);
  char32_t character = lead < 0xF0 ? lead & 0x0F : (lead & 0x07) << 6 | (next() & 0x3F);
  character = character << 6 | (next() & 0x3F);
  return character << 6 | (next() & 0x3F);
}

inline void append_utf8(std::string& text, char32_t character) {
  const auto add = [&text](char32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](int shift) { add(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) return add(character);
  if (character < 0x800) {
    add(0xC0 | character >> 6);
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add_rest(6);
  } else {
    add(0xF0 | character >> 18);
    add_rest(12);
    add_rest(6);
  }
  add_rest(0);
}

/// The valid UTF-8 at the start of `text`, in bytes.
inline std::size_t valid_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto [bytes, valid] = scan_character(text.substr(at));
    if (!valid) break;
    at += bytes;
  }
  return at;
}

/// The text itself if it is valid, else a copy in `buffer` with replacement characters.
inline std::string_view with_replacements(std::string_view text, std::string& buffer) {
  std::size_t at = valid_length(text);
  if (at == text.size()) return text;
  buffer.assign(text.substr(0, at));
  while (at < text.size()) {
    const auto [bytes, valid] = scan_character(text.substr(at));
    if (valid) {
      buffer += text.substr(at, bytes);
    } else {
      append_utf8(buffer, replacement_character);
    }
    at += bytes;
  }
  return buffer;
}

inline void append_characters(std::string_view text, std::u32string& characters) {
  for (std::size_t at = 0; at < text.size();) characters += next_character(text, at);
}

}  // namespace russet::text
