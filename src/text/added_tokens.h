#pragma once
// Added tokens: found in the text before the model sees it, such as [MASK], and kept whole.
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/characters.h"
#include "text/token_table.h"

namespace russet::text {

struct AddedToken {
  TokenId id = no_token;
  std::string content;
  bool single_word = false;  // found only where no letter or digit touches it
  bool lstrip = false;       // takes the white space on its left along
  bool rstrip = false;       // and on its right
  bool normalized = false;   // looked for in normalized text, itself normalized
  bool special = false;      // left out of decoded text
};

/// A part of a text: an added token, or text between them.
struct TextPart {
  std::string_view text;
  TokenId added = no_token;
};

/// Finds tokens in a text: from the left, the longest first.
class AddedTokenMatcher {
 public:
  /// `content` is what to look for; returns false if another token looks for the same.
  bool add(const AddedToken& token, std::string content);
  bool empty() const { return patterns_.empty(); }
  /// The parts of `text` that are not empty, in order.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Pattern {
    std::string content;
    AddedToken token;
  };
  const Pattern* match(std::string_view text, std::size_t at) const;
  bool touches_word(std::string_view text, std::size_t begin, std::size_t end) const;

  std::vector<Pattern> patterns_;
  std::array<std::vector<std::size_t>, 256> by_first_byte_;  // the longest first
};

}  // namespace russet::text
