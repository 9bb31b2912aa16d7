// Samples of named fields and of any length: how they become batches, and which ones come together.
#include <gtest/gtest.h>
#include <russet/data.h>

#include <chrono>
#include <numeric>
#include <set>
#include <thread>

namespace russet::data {
namespace {

using Numbers = std::vector<std::int64_t>;

FieldValues row(const Numbers& values) { return FieldValues::from(values, {std::ssize(values)}); }

std::string message_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Numbers values_of(const Tensor& tensor) { return tensor.to_vector<std::int64_t>(); }

/// Sample i has `words`, i % 4 + 1 numbers i, and `image`, a number. Waits now and then so that threads overtake each
/// other.
class Sentences final : public FieldDataset {
 public:
  explicit Sentences(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Sample sample(std::int64_t index, Random& random) const override {
    if (index % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(index % 7 * 30));
    Sample sample;
    sample.emplace("words", row(Numbers(static_cast<std::size_t>(index % 4 + 1), index)));
    sample.emplace("image", FieldValues::scalar(static_cast<float>(random.uniform())));
    return sample;
  }

 private:
  std::int64_t size_;
};

const PadOptions pad_words{.fields = {{"words", {.value = -1, .mask = "mask"}}}};

TEST(Collate, StacksFieldsOfOneShape) {
  const std::vector<Sample> samples{{{"a", row({1, 2})}, {"b", FieldValues::scalar(0.5F)}},
                                    {{"a", row({3, 4})}, {"b", FieldValues::scalar(1.5F)}}};
  const Sample batch = stack_samples(samples);
  EXPECT_EQ(batch.at("a").field, (Field{DType::int64, {2, 2}}));
  EXPECT_EQ(batch.at("a").bytes, row({1, 2, 3, 4}).bytes);
  EXPECT_EQ(batch.at("b").field, (Field{DType::float32, {2}}));
}

TEST(Collate, SamplesThatDoNotFitAreRefused) {
  const auto stack = [](const std::vector<Sample>& samples) { return message_of([&] { stack_samples(samples); }); };
  EXPECT_EQ(stack({{{"a", row({1})}}, {{"a", row({1, 2})}}}),
            "collate: the field \"a\" is [1] in one sample and [2] in another: pad it (data::pad_samples)");
  EXPECT_EQ(stack({{{"a", row({1})}}, {{"a", FieldValues::from(std::vector<float>{1}, {1})}}}),
            "collate: the field \"a\" is int64 in one sample and float32 in another");
  EXPECT_EQ(stack({{{"a", row({1})}}, {{"b", row({1})}}}), "collate: not all samples have a field \"b\"");
  EXPECT_EQ(stack({{{"a", row({1})}}, {{"a", row({1})}, {"b", row({1})}}}),
            "collate: not all samples have a field \"b\"");
  FieldValues short_of_bytes = row({1, 2});
  short_of_bytes.bytes.pop_back();
  EXPECT_EQ(stack({{{"a", short_of_bytes}}}), "collate: the field \"a\" is int64 [2], but has 15 bytes");
  EXPECT_THROW(FieldValues::from(Numbers{1, 2, 3}, {2}), ShapeError);
}

TEST(Collate, PadsToTheLongestOfTheBatch) {
  const Collate pad = pad_samples({.fields = {{"a", {.value = 7, .mask = "mask"}}}});
  const Sample batch = pad(std::vector<Sample>{{{"a", row({1})}}, {{"a", row({2, 3, 4})}}, {{"a", row({})}}});
  EXPECT_EQ(batch.at("a").field, (Field{DType::int64, {3, 3}}));
  EXPECT_EQ(batch.at("a").bytes, row({1, 7, 7, 2, 3, 4, 7, 7, 7}).bytes);
  EXPECT_EQ(batch.at("mask").field, (Field{DType::int64, {3, 3}}));
  EXPECT_EQ(batch.at("mask").bytes, row({1, 0, 0, 1, 1, 1, 0, 0, 0}).bytes);
}

TEST(Collate, PadsTheFirstAxisToAMultiple) {
  const Collate pad = pad_samples({.fields = {{"a", {.value = 0.5}}}, .multiple_of = 4});
  const std::vector<float> values{1, 2, 3, 4};
  const Sample batch = pad(std::vector<Sample>{{{"a", FieldValues::from(values, {2, 2})}}});
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch.at("a").field, (Field{DType::float32, {1, 4, 2}}));
  const std::vector<float> expected{1, 2, 3, 4, 0.5, 0.5, 0.5, 0.5};
  EXPECT_EQ(batch.at("a").bytes, FieldValues::from(expected, {8}).bytes);
}

TEST(Collate, PaddingThatCannotBeIsRefused) {
  const auto pad = [](PadOptions options, const std::vector<Sample>& samples) {
    return message_of([&] { pad_samples(std::move(options))(samples); });
  };
  EXPECT_EQ(pad({.multiple_of = 0}, {}), "pad_samples: lengths cannot be multiples of 0");
  EXPECT_EQ(pad(pad_words, {{{"a", row({1})}}}), "collate: there is no field \"words\" to pad");
  EXPECT_EQ(pad(pad_words, {{{"words", FieldValues::scalar(1)}}}),
            "collate: the field \"words\" is a scalar: there is nothing to pad");
  EXPECT_EQ(pad(pad_words, {{{"words", row({1})}, {"mask", row({1})}}}),
            "collate: samples have a field \"mask\", so it cannot be the mask");
  EXPECT_EQ(pad(pad_words, {{{"words", row({1})}}, {{"words", FieldValues::from(Numbers{1, 2}, {1, 2})}}}),
            "collate: the field \"words\" is [1] in one sample and [1, 2] in another");
}

TEST(DataLoader, NamedFieldsComeInBatches) {
  DataLoader loader(Sentences(6), {.batch = 3, .collate = pad_samples(pad_words)});
  const std::optional<Batch> first = loader.next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->input.defined());
  EXPECT_EQ(first->fields.at("words").sizes(), (Shape{3, 3}));
  EXPECT_EQ(values_of(first->fields.at("words")), (Numbers{0, -1, -1, 1, 1, -1, 2, 2, 2}));
  EXPECT_EQ(values_of(first->fields.at("mask")), (Numbers{1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(first->fields.at("image").sizes(), Shape{3});
  EXPECT_EQ(loader.next()->fields.at("words").sizes(), (Shape{3, 4}));
  EXPECT_FALSE(loader.next());
}

TEST(DataLoader, ThreadsDoNotMatterToCollatedBatches) {
  std::vector<Numbers> truth;
  for (const int workers : {0, 1, 2, 3, 8}) {
    for (const int ahead : {1, 4}) {
      LoaderOptions options{.batch = 16, .shuffle = true, .seed = 7, .workers = workers, .ahead = ahead};
      options.collate = pad_samples(pad_words);
      DataLoader loader(Sentences(203), options);
      std::vector<Numbers> batches;
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (const Batch& batch : loader) {
          batches.push_back(values_of(batch.fields.at("words")));
          batches.push_back(values_of(batch.fields.at("image") * 1e9));
        }
      }
      if (truth.empty()) truth = batches;
      EXPECT_EQ(batches, truth) << workers << " workers, " << ahead << " ahead";
    }
  }
  EXPECT_EQ(truth.size(), 52U);
}

TEST(DataLoader, WhatACollateFunctionThrowsIsPassedOn) {
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(Sentences(12), {.batch = 4, .workers = workers});  // no padding
    for (int batch = 0; batch < 3; ++batch) EXPECT_THROW(loader.next(), ShapeError);
    EXPECT_FALSE(loader.next());
  }
}

TEST(DataLoader, ABatchWhoseBytesDoNotFitIsRefused) {
  const Collate wrong = [](std::span<const Sample>) { return Sample{{"input", {{DType::int64, {2}}, {}}}}; };
  DataLoader loader(Sentences(8), {.batch = 4, .collate = wrong});
  EXPECT_THROW(loader.next(), ShapeError);
  EXPECT_THROW(loader.next(), ShapeError);
  EXPECT_FALSE(loader.next());
}

TEST(DataLoader, ACollateFunctionTakesSamplesOfAnySet) {
  const TensorDataset set(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}), Tensor::from<std::int64_t>({4, 0, 2}, {3}));
  DataLoader plain(set, {.batch = 2});
  DataLoader collated(Subset(std::make_shared<const TensorDataset>(set), Numbers{0, 1, 2}),
                      {.batch = 2, .collate = stack_samples});
  for (int batch = 0; batch < 2; ++batch) {
    const Batch a = *plain.next();
    const Batch b = *collated.next();
    EXPECT_EQ(a.input.to_vector<float>(), b.input.to_vector<float>());
    EXPECT_EQ(values_of(a.target), values_of(b.target));
    EXPECT_TRUE(b.fields.empty());
  }
}

const std::vector<Numbers> sentences{{5, 6, 7}, {8}, {9, 10}, {11, 12, 13, 14, 15}};

TEST(TokenDataset, BatchesArePaddedWithMasks) {
  const TokenDataset set(sentences, {0, 1, 1, 2}, 3, {.pad_id = 99, .class_names = {"a", "b", "c"}});
  EXPECT_EQ(set.size(), 4);
  EXPECT_EQ(set.classes(), 3);
  EXPECT_EQ(set.lengths(), (Numbers{3, 1, 2, 5}));
  EXPECT_EQ(set.input(), (Field{DType::int64, {5}}));
  DataLoader loader(set, {.batch = 3});
  for (auto [input, target] : loader) {
    EXPECT_EQ(values_of(input), (Numbers{5, 6, 7, 8, 99, 99, 9, 10, 99}));
    EXPECT_EQ(values_of(target), (Numbers{0, 1, 1}));
    break;
  }
  loader.restore({0, 0});
  const Batch first = *loader.next();
  EXPECT_EQ(values_of(first.fields.at("attention_mask")), (Numbers{1, 1, 1, 1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(loader.next()->input.sizes(), (Shape{1, 5}));
}

TEST(TokenDataset, LengthsAreRoundedUp) {
  const TokenDataset set(sentences, {0, 1, 1, 2}, 3, {.pad_to_multiple_of = 4});
  EXPECT_EQ(set.input().shape, Shape{8});
  DataLoader loader(set, {.batch = 3});
  EXPECT_EQ(loader.next()->input.sizes(), (Shape{3, 4}));
  EXPECT_EQ(loader.next()->fields.at("attention_mask").sizes(), (Shape{1, 8}));
}

TEST(TokenDataset, SamplesThatCannotBeAreRefused) {
  const auto make = [](std::vector<Numbers> ids, Numbers labels, TokenOptions options = {}) {
    return message_of([&] { TokenDataset(std::move(ids), std::move(labels), 2, std::move(options)); });
  };
  EXPECT_EQ(make({{1}, {}}, {0, 0}), "TokenDataset: sample 1 has no token");
  EXPECT_EQ(make({{1}, {1}}, {0, 2}), "TokenDataset: sample 1 has the label 2, outside 0 to 1");
  EXPECT_EQ(make({{1}}, {-1}), "TokenDataset: sample 0 has the label -1, outside 0 to 1");
  EXPECT_EQ(make({{1}}, {0, 0}), "TokenDataset: 1 samples and 2 labels");
  EXPECT_EQ(make({{1}}, {0}, {.pad_to_multiple_of = 0}), "TokenDataset: pad_to_multiple_of must be at least 1, not 0");
}

TEST(TokenDataset, WithoutPaddingNothingIsMadeUp) {
  const TokenDataset set(sentences, {0, 1, 1, 2}, 3);
  Random random(0, Random::Purpose::augmentation);
  std::vector<std::byte> input(set.input().bytes());
  std::vector<std::byte> target(set.target().bytes());
  EXPECT_NO_THROW(set.get(3, input, target, random));
  EXPECT_EQ(input, row(sentences[3]).bytes);
  EXPECT_THROW(set.get(0, input, target, random), ShapeError);
}

Numbers random_lengths(std::int64_t size) {
  Random random(3, Random::Purpose::content);
  Numbers lengths;
  for (std::int64_t i = 0; i < size; ++i) lengths.push_back(static_cast<std::int64_t>(random.below(60)) + 1);
  return lengths;
}

TEST(LengthGroupedSampler, EachEpochIsAPermutation) {
  const LengthGroupedSampler sampler(random_lengths(1003), 8, 5);
  std::set<Numbers> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    Numbers order = sampler.order(epoch);
    EXPECT_EQ(order, sampler.order(epoch));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    Numbers all(1003);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_EQ(orders.size(), 3U);
  EXPECT_NE(LengthGroupedSampler(random_lengths(1003), 8, 6).order(0), sampler.order(0));
}

/// What batches of 8 are padded with, over all that they hold.
double padding_of(const Sampler& sampler, const Numbers& lengths) {
  const Numbers order = sampler.order(0);
  std::int64_t padded = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += 8) {
    std::int64_t longest = 0;
    const std::size_t end = std::min(begin + 8, order.size());
    for (std::size_t i = begin; i < end; ++i) longest = std::max(longest, lengths[static_cast<std::size_t>(order[i])]);
    padded += longest * static_cast<std::int64_t>(end - begin);
  }
  const auto real = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  return 1 - static_cast<double>(real) / static_cast<double>(padded);
}

TEST(LengthGroupedSampler, BatchesAreOfSimilarLength) {
  const Numbers lengths = random_lengths(1003);
  EXPECT_GT(padding_of(RandomSampler(1003, 5), lengths), 0.35);
  EXPECT_LT(padding_of(LengthGroupedSampler(lengths, 8, 5), lengths), 0.05);
  // Long batches come at any time, and the batch that is not full comes last.
  const Numbers order = LengthGroupedSampler(lengths, 8, 5).order(0);
  const auto length_at = [&](std::size_t batch) { return lengths[static_cast<std::size_t>(order[batch * 8])]; };
  int rises = 0;
  for (std::size_t batch = 1; batch < 125; ++batch) rises += length_at(batch) > length_at(batch - 1);
  EXPECT_GT(rises, 40);
  EXPECT_LT(rises, 85);
}

TEST(LengthGroupedSampler, AnySizeWillDo) {
  EXPECT_TRUE(LengthGroupedSampler({}, 8, 0).order(0).empty());
  EXPECT_EQ(LengthGroupedSampler({4}, 8, 0).order(0), Numbers{0});
  EXPECT_EQ(LengthGroupedSampler({4, 9}, std::int64_t{1} << 60, 0).order(0), (Numbers{1, 0}));
  EXPECT_THROW(LengthGroupedSampler({4}, 0, 0), ValueError);
}

TEST(DataLoader, GroupsByLengthIfTold) {
  std::vector<Numbers> ids;
  const Numbers lengths = random_lengths(90);
  for (const std::int64_t length : lengths) ids.emplace_back(static_cast<std::size_t>(length), length);
  const TokenDataset set(ids, Numbers(90), 1);
  DataLoader loader(set, {.batch = 8, .seed = 2, .group_by_length = true});
  std::vector<std::int64_t> seen;
  for (const Batch& batch : loader) {
    for (std::int64_t sample = 0; sample < batch.input.size(0); ++sample) {
      seen.push_back(batch.input.select(0, sample).select(0, 0).item<std::int64_t>());
    }
  }
  Numbers expected;
  for (const std::int64_t index : LengthGroupedSampler(lengths, 8, 2).order(0)) {
    expected.push_back(lengths[static_cast<std::size_t>(index)]);
  }
  EXPECT_EQ(seen, expected);
  // Where samples are alike it is the order of `shuffle`.
  const TensorDataset rows(Tensor::from<float>({1, 2, 3, 4}, {4}), Tensor::from<std::int64_t>({0, 1, 2, 3}, {4}));
  DataLoader grouped(rows, {.batch = 4, .seed = 2, .group_by_length = true});
  DataLoader shuffled(rows, {.batch = 4, .shuffle = true, .seed = 2});
  EXPECT_EQ(values_of(grouped.next()->target), values_of(shuffled.next()->target));
}

TEST(Subset, KeepsLengthsAndFields) {
  const auto set = std::make_shared<const TokenDataset>(sentences, Numbers{0, 1, 1, 2}, 3);
  const Subset subset(set, Numbers{3, 1});
  EXPECT_EQ(subset.lengths(), (Numbers{5, 1}));
  DataLoader loader(subset, {.batch = 2});
  const Batch batch = *loader.next();
  EXPECT_EQ(values_of(batch.input), (Numbers{11, 12, 13, 14, 15, 8, 0, 0, 0, 0}));
  EXPECT_EQ(values_of(batch.fields.at("attention_mask")), (Numbers{1, 1, 1, 1, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace russet::data
