#include <fmt/format.h>
#include <russet/data/masked_tokens.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>

#include "data/token_lengths.h"

namespace russet::data {

bool MaskedTokenDataset::is_special(std::int64_t id) const {
  return std::find(options_.special_ids.begin(), options_.special_ids.end(), id) != options_.special_ids.end();
}

MaskedTokenDataset::MaskedTokenDataset(std::vector<std::vector<std::int64_t>> ids, MaskingOptions options)
    : ids_(std::move(ids)), options_(std::move(options)) {
  const auto is_share = [](double share) { return share >= 0 && share <= 1; };
  if (!(options_.share > 0 && is_share(options_.share) && is_share(options_.masked) && is_share(options_.replaced) &&
        is_share(options_.masked + options_.replaced))) {
    throw ValueError(
        fmt::format("MaskedTokenDataset: {} of the tokens, of them {} masked and {} replaced, are no shares",
                    options_.share, options_.masked, options_.replaced));
  }
  if (options_.pad_to_multiple_of < 1) {
    throw ValueError(
        fmt::format("MaskedTokenDataset: pad_to_multiple_of must be at least 1, not {}", options_.pad_to_multiple_of));
  }
  const auto is_known = [&](std::int64_t id) { return id >= 0 && id < options_.vocab_size; };
  if (!is_known(options_.mask_id) || !is_known(options_.pad_id)) {
    throw ValueError(fmt::format("MaskedTokenDataset: mask {} and padding {} are to be among {} ids", options_.mask_id,
                                 options_.pad_id, options_.vocab_size));
  }
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (!std::all_of(ids_[i].begin(), ids_[i].end(), is_known)) {
      throw ValueError(
          fmt::format("MaskedTokenDataset: sample {} has an id outside the vocabulary of {}", i, options_.vocab_size));
    }
    if (std::all_of(ids_[i].begin(), ids_[i].end(), [&](std::int64_t id) { return is_special(id); })) {
      throw ValueError(fmt::format("MaskedTokenDataset: sample {} has no token to mask", i));
    }
  }
}

Sample MaskedTokenDataset::sample(std::int64_t index, Random& random) const {
  std::vector<std::int64_t> input = ids_[static_cast<std::size_t>(index)];
  std::vector<std::int64_t> target(input.size(), unmasked);
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (!is_special(input[i])) places.push_back(static_cast<std::int64_t>(i));
  }
  random.shuffle(places);
  const double count = std::nearbyint(options_.share * static_cast<double>(places.size()));
  places.resize(static_cast<std::size_t>(std::max(count, 1.0)));
  for (const std::int64_t place : places) {
    std::int64_t& token = input[static_cast<std::size_t>(place)];
    target[static_cast<std::size_t>(place)] = token;
    const double chance = random.uniform();
    if (chance < options_.masked) {
      token = options_.mask_id;
    } else if (chance < options_.masked + options_.replaced) {
      token = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(options_.vocab_size)));
    }
  }
  const Shape shape{static_cast<std::int64_t>(input.size())};
  Sample sample;
  sample.emplace("input", FieldValues::from(input, shape));
  sample.emplace("target", FieldValues::from(target, shape));
  return sample;
}

Collate MaskedTokenDataset::collate() const {
  return pad_samples({.fields = {{"input", {.value = static_cast<double>(options_.pad_id), .mask = "attention_mask"}},
                                 {"target", {.value = static_cast<double>(unmasked)}}},
                      .multiple_of = options_.pad_to_multiple_of});
}

std::vector<std::int64_t> MaskedTokenDataset::lengths() const { return lengths_of(ids_); }

Field MaskedTokenDataset::input() const { return field_of_longest(lengths(), options_.pad_to_multiple_of); }

}  // namespace russet::data
