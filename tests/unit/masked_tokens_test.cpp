// Masked tokens: how many, which, and what stands in their place, by BERT's paper.
#include <gtest/gtest.h>
#include <russet/data.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace russet::data {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t mask = 4;
constexpr std::int64_t words = 1000;

MaskingOptions options() { return {.mask_id = mask, .vocab_size = words, .special_ids = {0, 1, 2, 3, mask}}; }

/// [CLS], `count` words from 100 on, [SEP].
Numbers sentence(std::int64_t count) {
  Numbers ids(static_cast<std::size_t>(count) + 2);
  std::iota(ids.begin(), ids.end(), 99);
  ids.front() = 2;
  ids.back() = 3;
  return ids;
}

Numbers values_of(const FieldValues& values) {
  const auto* const first = reinterpret_cast<const std::int64_t*>(values.bytes.data());
  return {first, first + values.bytes.size() / sizeof(std::int64_t)};
}

struct Masked {
  Numbers input;
  Numbers target;
};

Masked masked(const MaskedTokenDataset& set, std::int64_t index, std::uint64_t position) {
  Random random(5, Random::Purpose::augmentation, 0, position);
  const Sample sample = set.sample(index, random);
  return {values_of(sample.at("input")), values_of(sample.at("target"))};
}

TEST(MaskedTokens, FifteenOfAHundredAndAtLeastOneAreToBeTold) {
  for (const auto& [count, told] :
       {std::pair(1, 1), std::pair(3, 1), std::pair(10, 2), std::pair(16, 2), std::pair(17, 3), std::pair(100, 15)}) {
    const Numbers original = sentence(count);
    const MaskedTokenDataset set({original}, options());
    for (std::uint64_t position = 0; position < 20; ++position) {
      const auto [input, target] = masked(set, 0, position);
      ASSERT_EQ(input.size(), original.size());
      std::int64_t found = 0;
      for (std::size_t i = 0; i < original.size(); ++i) {
        if (target[i] == unmasked) {
          EXPECT_EQ(input[i], original[i]);
        } else {
          EXPECT_EQ(target[i], original[i]);
          EXPECT_GE(target[i], 100);  // no special one
          ++found;
        }
      }
      EXPECT_EQ(found, told) << count;
    }
  }
}

TEST(MaskedTokens, EightOfTenAreMaskedAndOneIsAnother) {
  constexpr std::int64_t length = 100;
  constexpr std::uint64_t samples = 1000;
  const Numbers original = sentence(length);
  const MaskedTokenDataset set({original}, options());
  std::int64_t hidden = 0;
  std::int64_t kept = 0;
  std::int64_t others = 0;
  double sum = 0;
  Numbers told(original.size());
  for (std::uint64_t position = 0; position < samples; ++position) {
    const auto [input, target] = masked(set, 0, position);
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (target[i] == unmasked) continue;
      ++told[i];
      hidden += input[i] == mask ? 1 : 0;
      kept += input[i] == target[i] ? 1 : 0;
      if (input[i] == mask || input[i] == target[i]) continue;
      ++others;
      sum += static_cast<double>(input[i]);
    }
  }
  const double all = 15.0 * samples;
  const auto near = [&](double count, double share) {
    EXPECT_NEAR(count / all, share, 5 * std::sqrt(share * (1 - share) / all)) << share;
  };
  near(static_cast<double>(hidden), 0.8 + 0.1 / words);  // the other one may be the mask
  near(static_cast<double>(kept), 0.1 + 0.1 / words);
  near(static_cast<double>(others), 0.1 - 0.2 / words);
  // Others are uniform: their mean, within five standard errors.
  EXPECT_NEAR(sum / static_cast<double>(others), words / 2.0,
              5 * words / std::sqrt(12.0 * static_cast<double>(others)));
  // Every place is told alike, 15 times in 100.
  const auto [least, most] = std::minmax_element(told.begin() + 1, told.end() - 1);
  EXPECT_GT(*least, samples * 0.15 - 5 * std::sqrt(samples * 0.15 * 0.85));
  EXPECT_LT(*most, samples * 0.15 + 5 * std::sqrt(samples * 0.15 * 0.85));
  EXPECT_EQ(told.front() + told.back(), 0);
}

TEST(MaskedTokens, BatchesArePaddedAndTheSameOnAnyThread) {
  std::vector<Numbers> ids;
  for (std::int64_t i = 0; i < 40; ++i) ids.push_back(sentence(3 + i % 7));
  MaskingOptions padded = options();
  padded.pad_to_multiple_of = 4;
  const MaskedTokenDataset set(ids, padded);
  EXPECT_EQ(set.input(), (Field{DType::int64, {12}}));
  std::vector<Numbers> truth;
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(set, {.batch = 8, .shuffle = true, .seed = 2, .workers = workers});
    std::vector<Numbers> found;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const Batch& batch : loader) {
        ASSERT_EQ(batch.target.sizes(), batch.input.sizes());
        EXPECT_EQ(batch.input.size(1) % 4, 0);
        found.push_back(batch.input.to_vector<std::int64_t>());
        found.push_back(batch.target.to_vector<std::int64_t>());
        const Numbers tokens = batch.fields.at("attention_mask").to_vector<std::int64_t>();
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          if (tokens[i] != 0) continue;
          EXPECT_EQ(found[found.size() - 2][i], 0);
          EXPECT_EQ(found.back()[i], unmasked);
        }
      }
    }
    if (truth.empty()) truth = found;
    EXPECT_EQ(found, truth) << workers;
  }
  EXPECT_NE(Numbers(truth[1]), Numbers(truth[11]));  // each epoch masks anew
}

TEST(MaskedTokens, WhatCannotBeMaskedIsRefused) {
  const auto refuses = [](std::vector<Numbers> ids, const MaskingOptions& given) {
    EXPECT_THROW(MaskedTokenDataset(std::move(ids), given), ValueError);
  };
  refuses({{2, 3}}, options());
  refuses({{}}, options());
  refuses({{2, words, 3}}, options());
  refuses({{2, -1, 3}}, options());
  MaskingOptions wrong = options();
  wrong.share = 0;
  refuses({{2, 100, 3}}, wrong);
  wrong = options();
  wrong.masked = 0.95;
  refuses({{2, 100, 3}}, wrong);
  wrong = options();
  wrong.mask_id = words;
  refuses({{2, 100, 3}}, wrong);
  wrong = options();
  wrong.pad_to_multiple_of = 0;
  refuses({{2, 100, 3}}, wrong);
}

}  // namespace
}  // namespace russet::data
