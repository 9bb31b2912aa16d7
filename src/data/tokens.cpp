#include <fmt/format.h>
#include <russet/data/tokens.h>
#include <russet/error.h>

#include <algorithm>

#include "data/token_lengths.h"

namespace russet::data {

TokenDataset::TokenDataset(std::vector<std::vector<std::int64_t>> ids, std::vector<std::int64_t> labels,
                           std::int64_t classes, TokenOptions options)
    : ids_(std::move(ids)), labels_(std::move(labels)), classes_(classes), options_(std::move(options)) {
  if (ids_.size() != labels_.size()) {
    throw ValueError(fmt::format("TokenDataset: {} samples and {} labels", ids_.size(), labels_.size()));
  }
  if (options_.pad_to_multiple_of < 1) {
    throw ValueError(
        fmt::format("TokenDataset: pad_to_multiple_of must be at least 1, not {}", options_.pad_to_multiple_of));
  }
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i].empty()) throw ValueError(fmt::format("TokenDataset: sample {} has no token", i));
    if (labels_[i] >= 0 && labels_[i] < classes_) continue;
    throw ValueError(
        fmt::format("TokenDataset: sample {} has the label {}, outside 0 to {}", i, labels_[i], classes_ - 1));
  }
}

Sample TokenDataset::sample(std::int64_t index, Random& /*random*/) const {
  const auto row = static_cast<std::size_t>(index);
  Sample sample;
  sample.emplace("input", FieldValues::from(ids_[row], {static_cast<std::int64_t>(ids_[row].size())}));
  sample.emplace("target", FieldValues::scalar(labels_[row]));
  return sample;
}

Collate TokenDataset::collate() const {
  return pad_samples({.fields = {{"input", {.value = static_cast<double>(options_.pad_id), .mask = "attention_mask"}}},
                      .multiple_of = options_.pad_to_multiple_of});
}

std::vector<std::int64_t> TokenDataset::lengths() const { return lengths_of(ids_); }

Field TokenDataset::input() const { return field_of_longest(lengths(), options_.pad_to_multiple_of); }

}  // namespace russet::data
