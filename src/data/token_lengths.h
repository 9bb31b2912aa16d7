#pragma once
// What datasets of texts say of their lengths.
#include <russet/data/sample.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace russet::data {

/// The number of ids of each text.
inline std::vector<std::int64_t> lengths_of(const std::vector<std::vector<std::int64_t>>& texts) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(texts.size());
  for (const std::vector<std::int64_t>& ids : texts) lengths.push_back(static_cast<std::int64_t>(ids.size()));
  return lengths;
}

/// The field of ids as long as the longest text, padded to a multiple.
inline Field field_of_longest(const std::vector<std::int64_t>& lengths, std::int64_t multiple) {
  const std::int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  return {DType::int64, {padded_length(longest, multiple)}};
}

}  // namespace russet::data
