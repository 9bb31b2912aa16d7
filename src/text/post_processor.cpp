#include "text/post_processor.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <utility>

namespace russet::text {
namespace {

using Kind = TemplatePiece::Kind;

std::size_t special_tokens_in(const Template& pieces) {
  std::size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.ids.size();
  return count;
}

void cut(Ids& ids, std::size_t length, TruncationSide side) {
  if (ids.size() <= length) return;
  if (side == TruncationSide::left) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(length));
  ids.resize(length);
}

/// The lengths of two sequences that together may have `limit`: the longer one is cut first.
std::pair<std::size_t, std::size_t> cut_longest(std::size_t first, std::size_t second, std::size_t limit) {
  const bool swapped = first > second;
  if (swapped) std::swap(first, second);
  second = first > limit ? first : std::max(first, limit - first);
  if (first + second > limit) {
    first = limit / 2;
    second = first + limit % 2;
  }
  if (swapped) std::swap(first, second);
  return {first, second};
}

void truncate(Ids& first, Ids* second, std::size_t limit, const EncodeOptions& options) {
  const std::size_t total = first.size() + (second == nullptr ? 0 : second->size());
  if (total <= limit) return;
  if (limit == 0) {
    first.clear();
    if (second != nullptr) second->clear();
    return;
  }
  const TruncationStrategy strategy = options.truncation;
  if (strategy == TruncationStrategy::longest_first) {
    const auto [first_length, second_length] =
        second == nullptr ? std::pair(limit, std::size_t{0}) : cut_longest(first.size(), second->size(), limit);
    cut(first, first_length, options.truncation_side);
    if (second != nullptr) cut(*second, second_length, options.truncation_side);
    return;
  }
  Ids* const chosen = strategy == TruncationStrategy::only_first ? &first : second;
  if (chosen == nullptr) throw ValueError("encode: there is no second sequence that truncation could cut");
  const std::size_t excess = total - limit;
  if (chosen->size() <= excess) {
    throw ValueError(
        fmt::format("encode: the sequence to cut has {} tokens, and {} would have to go; try longest_first",
                    chosen->size(), excess));
  }
  cut(*chosen, chosen->size() - excess, options.truncation_side);
}

void append(Encoding& encoding, const Ids& ids, std::int64_t type_id) {
  encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
  encoding.type_ids.resize(encoding.ids.size(), type_id);
  encoding.attention_mask.resize(encoding.ids.size(), 1);
}

PostProcessor with_ends(TokenId cls, TokenId sep, Template rest, std::int64_t type_of_second) {
  PostProcessor processor;
  processor.single = {{Kind::special, 0, {cls}}, {Kind::first, 0, {}}, {Kind::special, 0, {sep}}};
  processor.pair = processor.single;
  processor.pair.insert(processor.pair.end(), rest.begin(), rest.end());
  processor.pair.push_back({Kind::second, type_of_second, {}});
  processor.pair.push_back({Kind::special, type_of_second, {sep}});
  return processor;
}

}  // namespace

PostProcessor bert_processing(TokenId cls, TokenId sep) { return with_ends(cls, sep, {}, 1); }
PostProcessor roberta_processing(TokenId cls, TokenId sep) {
  return with_ends(cls, sep, {{Kind::special, 0, {sep}}}, 0);
}

Encoding post_process(const PostProcessor& processor, Ids first, Ids* second, const EncodeOptions& options) {
  const Template& pieces = second == nullptr ? processor.single : processor.pair;
  if (options.max_length) {
    const std::size_t special = options.add_special_tokens ? special_tokens_in(pieces) : 0;
    if (*options.max_length < static_cast<std::int64_t>(special)) {
      throw ValueError(
          fmt::format("encode: max_length is {}, and there are {} special tokens alone", *options.max_length, special));
    }
    truncate(first, second, static_cast<std::size_t>(*options.max_length) - special, options);
  }
  Encoding encoding;
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == Kind::first) append(encoding, first, piece.type_id);
    if (piece.kind == Kind::second && second != nullptr) append(encoding, *second, piece.type_id);
    if (piece.kind == Kind::special && options.add_special_tokens) append(encoding, piece.ids, piece.type_id);
  }
  return encoding;
}

}  // namespace russet::text
