#include "text/read_models.h"

#include <fmt/format.h>

#include <limits>

namespace russet::text {

void read_vocabulary(const JsonNode& node, Vocabulary& vocabulary) {
  if (node.object().empty()) node.fail("it is empty");
  for (const auto& [token, value] : node.object().items()) {
    const auto id = static_cast<TokenId>(node.at(token).whole(std::numeric_limits<TokenId>::max() - 1));
    if (vocabulary.add(token, id) == Vocabulary::Added::yes) continue;
    node.fail(fmt::format("\"{}\" and \"{}\" have the same id {}", *vocabulary.token(id), token, id));
  }
}

std::string MergeReader::add(const std::string& left, const std::string& right) {
  const TokenId left_id = vocabulary_.find(left);
  const TokenId right_id = vocabulary_.find(right);
  const TokenId id = vocabulary_.find(left + right);
  for (const auto& [token, found] : {std::pair(left, left_id), {right, right_id}, {left + right, id}}) {
    if (found == no_token) return fmt::format("\"{}\" is not in the vocabulary", token);
  }
  merges_.insert_or_assign(merge_key(left_id, right_id), Merge{rank_++, id});
  return {};
}

std::string MergeReader::add(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    return "two tokens are expected, with a space between them";
  }
  return add(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
}

}  // namespace russet::text
