#pragma once
// Vocabulary: the tokens of a model and their ids.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/token_table.h"

namespace russet::text {

class Vocabulary {
 public:
  enum class Added : std::uint8_t { yes, same_token, same_id };

  Added add(const std::string& token, TokenId id) {
    if (find(token) != no_token) return Added::same_token;
    const auto [place, is_new] = tokens_.try_emplace(id, token);
    if (!is_new) return Added::same_id;
    ids_.add(place->second, id);
    largest_id_ = std::max(largest_id_, id);
    return Added::yes;
  }
  TokenId find(std::string_view token) const { return ids_.find(token); }
  /// The token of an id, or null. Its memory stays where it is while the vocabulary lives, moved or not.
  const std::string* token(TokenId id) const {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? nullptr : &found->second;
  }
  /// By id, in no order.
  const std::unordered_map<TokenId, std::string>& tokens() const { return tokens_; }
  std::size_t size() const { return tokens_.size(); }
  TokenId largest_id() const { return largest_id_; }

 private:
  std::unordered_map<TokenId, std::string> tokens_;
  TokenTable ids_;
  TokenId largest_id_ = -1;
};

}  // namespace russet::text
