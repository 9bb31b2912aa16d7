#include <gtest/gtest.h>
#include <russet/data.h>
#include <russet/functional.h>
#include <russet/operators.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace russet::data {
namespace {

/// Sample i is i and a random number; waits now and then so that threads overtake each other.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t bad = -2) : size_(size), bad_(bad) {}
  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::int64, {2}}; }
  Field target() const override { return {DType::int32, {}}; }
  void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const override {
    if (index == bad_ || index == bad_ + 1) throw FileError("folder/" + std::to_string(index) + ".jpg: damaged");
    if (index % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(index % 7 * 30));
    const std::int64_t values[2] = {index, random.word()};
    std::memcpy(input.data(), values, sizeof(values));
    const auto half = static_cast<std::int32_t>(index / 2);
    std::memcpy(target.data(), &half, sizeof(half));
  }

 private:
  std::int64_t size_;
  std::int64_t bad_;
};

using Values = std::vector<std::int64_t>;

/// All batches of the next `epochs` loops.
std::vector<Values> run(DataLoader& loader, int epochs = 1) {
  std::vector<Values> batches;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto [input, target] : loader) batches.push_back(input.to_vector<std::int64_t>());
  }
  return batches;
}

TEST(DataLoader, GoesThroughInOrder) {
  DataLoader loader(Numbers(10), {.batch = 4});
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(loader.samples(), 10);
  std::int64_t next = 0;
  for (auto [input, target] : loader) {
    const std::int64_t rows = std::min<std::int64_t>(4, 10 - next);
    EXPECT_EQ(input.sizes(), (Shape{rows, 2}));
    EXPECT_EQ(input.dtype(), DType::int64);
    EXPECT_EQ(target.sizes(), (Shape{rows}));
    EXPECT_EQ(target.dtype(), DType::int32);
    const auto halves = target.to_vector<std::int64_t>();
    for (const std::int64_t half : halves) EXPECT_EQ(half, next++ / 2);
  }
  EXPECT_EQ(next, 10);
}

TEST(DataLoader, DropsTheLastBatchIfTold) {
  DataLoader loader(Numbers(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  EXPECT_EQ(loader.samples(), 8);
  EXPECT_EQ(run(loader).size(), 2U);
  DataLoader none(Numbers(3), {.batch = 4, .drop_last = true});
  EXPECT_TRUE(run(none).empty());
  DataLoader large(Numbers(3), {.batch = std::int64_t{1} << 40});
  EXPECT_EQ(run(large).size(), 1U);
}

TEST(DataLoader, ShufflesEachEpochAnew) {
  DataLoader loader(Numbers(97), {.batch = 10, .shuffle = true, .seed = 5});
  std::set<Values> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    Values order;
    for (const Values& batch : run(loader)) {
      for (std::size_t i = 0; i < batch.size(); i += 2) order.push_back(batch[i]);
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (std::int64_t i = 0; i < 97; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(DataLoader, ThreadsDoNotMatter) {
  std::vector<Values> truth;
  for (const int workers : {0, 1, 2, 3, 8}) {
    for (const int ahead : {1, 4}) {
      DataLoader loader(Numbers(203), {.batch = 16, .shuffle = true, .seed = 7, .workers = workers, .ahead = ahead});
      const auto batches = run(loader, 2);
      if (truth.empty()) truth = batches;
      EXPECT_EQ(batches, truth) << workers << " workers, " << ahead << " ahead";
    }
  }
  DataLoader other(Numbers(203), {.batch = 16, .shuffle = true, .seed = 8});
  EXPECT_NE(run(other, 2), truth);
}

TEST(DataLoader, ResumesInTheMiddleOfAnEpoch) {
  const LoaderOptions options{.batch = 16, .shuffle = true, .seed = 7, .workers = 2};
  DataLoader whole(Numbers(100), options);
  const auto truth = run(whole, 3);  // 7 batches each
  for (std::size_t stop = 0; stop <= truth.size(); ++stop) {
    LoaderState saved;
    std::vector<Values> seen;
    {
      DataLoader first(Numbers(100), options);
      while (seen.size() < stop) {
        for (auto [input, target] : first) {
          seen.push_back(input.to_vector<std::int64_t>());
          saved = first.state();
          if (seen.size() == stop) break;
        }
      }
    }
    DataLoader second(Numbers(100), options);
    second.restore(saved);
    EXPECT_EQ(second.state(), saved);
    while (second.state().epoch < 3) {
      for (auto [input, target] : second) seen.push_back(input.to_vector<std::int64_t>());
    }
    EXPECT_EQ(seen, truth) << "stopped after " << stop;
  }
}

TEST(DataLoader, ALoopLeftEarlyIsDone) {
  DataLoader whole(Numbers(100), {.batch = 16, .shuffle = true});
  const auto truth = run(whole, 2);
  DataLoader loader(Numbers(100), {.batch = 16, .shuffle = true});
  for (auto [input, target] : loader) {
    EXPECT_EQ(input.to_vector<std::int64_t>(), truth[0]);
    break;
  }
  EXPECT_EQ(loader.state(), (LoaderState{0, 1}));
  EXPECT_EQ(run(loader), std::vector<Values>(truth.begin() + 7, truth.end()));
  EXPECT_EQ(loader.state(), (LoaderState{2, 0}));
}

TEST(DataLoader, StatesThatDoNotExistAreRefused) {
  DataLoader loader(Numbers(100), {.batch = 16});
  EXPECT_NO_THROW(loader.restore({5, 7}));
  EXPECT_THROW(loader.restore({5, 8}), ValueError);
  EXPECT_THROW(loader.restore({-1, 0}), ValueError);
  EXPECT_EQ(loader.state(), (LoaderState{5, 7}));
}

TEST(DataLoader, PassesTheFirstExceptionOn) {
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(Numbers(100, 50), {.batch = 16, .workers = workers});
    std::int64_t batches = 0;
    try {
      for (auto [input, target] : loader) ++batches;
      FAIL() << "nothing was thrown";
    } catch (const FileError& error) {
      EXPECT_STREQ(error.what(), "folder/50.jpg: damaged");
    }
    EXPECT_EQ(batches, 3);
    EXPECT_EQ(loader.state(), (LoaderState{0, 4}));
    loader.restore({0, 3});
    EXPECT_THROW(loader.next(), FileError);
  }
}

TEST(DataLoader, GoesOnBehindABadBatch) {
  DataLoader sound(Numbers(100), {.batch = 8, .shuffle = true, .workers = 0});
  const std::vector<Values> truth = run(sound, 2);
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(Numbers(100, 50), {.batch = 8, .shuffle = true, .workers = workers, .ahead = 3});
    std::vector<Values> batches;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (bool more = true; more;) {
        try {
          const std::optional<Batch> batch = loader.next();
          more = batch.has_value();
          if (more) batches.push_back(batch->input.to_vector<std::int64_t>());
        } catch (const FileError&) {
          batches.emplace_back();
        }
      }
    }
    ASSERT_EQ(batches.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      bool bad = false;
      for (std::size_t row = 0; row < truth[i].size(); row += 2) bad |= truth[i][row] == 50 || truth[i][row] == 51;
      EXPECT_EQ(batches[i], bad ? Values{} : truth[i]) << i;
    }
  }
}

TEST(DataLoader, OptionsOutOfRangeAreRefused) {
  EXPECT_THROW(DataLoader(Numbers(10), {.batch = 0}), ValueError);
  EXPECT_THROW(DataLoader(Numbers(10), {.ahead = 0}), ValueError);
  EXPECT_THROW(DataLoader(Numbers(0), {}), ValueError);
}

TEST(DataLoader, BatchesThatTheHostHasNoMemoryForAreRefused) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer ends the process where memory ends";
#endif
  class Wide final : public Dataset {
   public:
    std::int64_t size() const override { return 2; }
    Field input() const override { return {DType::uint8, {std::int64_t{1} << 61}}; }
    Field target() const override { return {DType::int32, {}}; }
    void get(std::int64_t, std::span<std::byte>, std::span<std::byte>, Random&) const override {}
  };
  try {
    DataLoader loader(Wide(), {.batch = 2});
    FAIL();
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(std::string(error.what()).find("DataLoader: no memory for 3 batches of 2 samples"), 0U) << error.what();
  }
}

TEST(DataLoader, CanBeLeftWhileThreadsWork) {
  for (int i = 0; i < 50; ++i) {
    DataLoader loader(Numbers(1000), {.batch = 8, .workers = 3, .ahead = 8});
    for (auto [input, target] : loader) {
      if (loader.state().position > i % 5) break;
    }
  }
}

TEST(DataLoader, ImagesAreAugmentedAlikeOnAnyThread) {
  const Shapes shapes({.size = 64}, {RandomCrop{32, 4}, RandomHorizontalFlip{}, ToFloat{}});
  std::vector<std::vector<float>> truth;
  for (const int workers : {0, 2}) {
    DataLoader loader(shapes, {.batch = 20, .shuffle = true, .seed = 1, .workers = workers});
    std::vector<std::vector<float>> epochs;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto [image, label] : loader) {
        EXPECT_EQ(label.dtype(), DType::int64);
        epochs.push_back(image.to_vector<float>());
      }
    }
    if (truth.empty()) truth = epochs;
    EXPECT_EQ(epochs, truth);
  }
}

/// Inputs and shares of classes, epoch after epoch.
std::vector<std::vector<float>> mixed_epochs(const LoaderOptions& options, int epochs) {
  DataLoader loader(Shapes({.size = 50, .side = 12}), options);
  std::vector<std::vector<float>> batches;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto [image, shares] : loader) {
      EXPECT_EQ(shares.sizes(), (Shape{image.size(0), 10}));
      batches.push_back(image.to_vector<float>());
      batches.push_back(shares.to_vector<float>());
    }
  }
  return batches;
}

TEST(DataLoader, BatchesAreMixedAlikeOnAnyThread) {
  LoaderOptions options{.batch = 8, .shuffle = true, .seed = 3, .workers = 0, .mixing = {0.3, 1.0, 0}};
  const auto truth = mixed_epochs(options, 2);
  for (const int workers : {1, 3, 8}) {
    options.workers = workers;
    EXPECT_EQ(mixed_epochs(options, 2), truth) << workers;
  }
  DataLoader resumed(Shapes({.size = 50, .side = 12}), options);
  resumed.restore({.epoch = 1, .position = 2});
  EXPECT_EQ(resumed.next()->input.to_vector<float>(), truth[2 * (7 + 2)]);  // of 7 batches an epoch
  options.seed = 4;
  EXPECT_NE(mixed_epochs(options, 2), truth);
  std::set<float> shares;
  for (std::size_t i = 1; i < truth.size(); i += 2) {
    for (std::size_t row = 0; row < truth[i].size(); row += 10) {
      const auto first = truth[i].begin() + static_cast<std::ptrdiff_t>(row);
      EXPECT_NEAR(std::accumulate(first, first + 10, 0.0F), 1, 1e-6);
      EXPECT_LE(std::count_if(first, first + 10, [](float share) { return share > 0; }), 2);
      shares.insert(*std::max_element(first, first + 10));
    }
  }
  EXPECT_GT(shares.size(), 7U);  // of 14 batches, each mixed by a share of its own
}

/// MixUp alone: a batch is its own samples and those before them, by the share that its targets tell.
TEST(DataLoader, MixesSamplesAsItSays) {
  const LoaderOptions plain{.batch = 5, .shuffle = true, .seed = 3, .workers = 0};
  LoaderOptions options = plain;
  options.mixing.mixup_alpha = 1;
  DataLoader unmixed(Shapes({.size = 5, .side = 8}), plain);
  DataLoader loader(Shapes({.size = 5, .side = 8}), options);
  const Batch before = *unmixed.next();
  const Batch after = *loader.next();
  const auto labels = before.target.to_vector<std::int64_t>();
  ASSERT_NE(labels[1], labels[0]);
  const auto own = after.target.select(0, 1).select(0, labels[1]).item();
  const Tensor expected = before.input.select(0, 1) * own + before.input.select(0, 0) * (1 - own);
  EXPECT_TRUE(allclose(after.input.select(0, 1), expected));
  const Tensor first = before.input.select(0, 0) * own + before.input.select(0, 4) * (1 - own);
  EXPECT_TRUE(allclose(after.input.select(0, 0), first));
}

TEST(DataLoader, RefusesWhatItCannotMix) {
  const auto refuses = [](auto dataset, const Mixing& mixing) {
    EXPECT_THROW(DataLoader(std::move(dataset), {.batch = 4, .mixing = mixing}), ValueError);
  };
  refuses(Shapes({.size = 8}, Transforms{}), {.mixup_alpha = 1});  // uint8
  refuses(Shapes({.size = 8}), {.mixup_alpha = -1});
  refuses(Shapes({.size = 8}), {.mixup_alpha = 1, .classes = 9});
  refuses(Numbers(8), {.mixup_alpha = 1});
  refuses(TensorDataset(zeros({4, 3}), zeros({4, 1})), {.mixup_alpha = 1});  // no classes
  refuses(TensorDataset(zeros({4, 3}), zeros({4}, {DType::int64})), {.cutmix_alpha = 1});
  EXPECT_NO_THROW(DataLoader(TensorDataset(zeros({4, 3}), zeros({4}, {DType::int64})), {.mixing = {1, 0, 7}}));
  const LoaderOptions collated{.collate = stack_samples, .mixing = {.mixup_alpha = 1}};
  EXPECT_THROW(DataLoader(Shapes({.size = 8}), collated), ValueError);
}

TEST(Split, HoldsOutAShareBySeed) {
  const auto set = std::make_shared<const Shapes>(ShapesOptions{.size = 100});
  const Split parts = split(set, 0.2, 9);
  EXPECT_EQ(parts.kept->size(), 80);
  EXPECT_EQ(parts.held_out->size(), 20);
  const auto& kept = dynamic_cast<const Subset&>(*parts.kept).indices();
  const auto& held = dynamic_cast<const Subset&>(*parts.held_out).indices();
  std::set<std::int64_t> all(kept.begin(), kept.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 100U);
  EXPECT_EQ(dynamic_cast<const Subset&>(*split(set, 0.2, 9).kept).indices(), kept);
  EXPECT_NE(dynamic_cast<const Subset&>(*split(set, 0.2, 10).kept).indices(), kept);
  EXPECT_THROW(split(set, 0.0, 1), ValueError);
  EXPECT_THROW(split(set, 1.0, 1), ValueError);
  // Transforms go through to the images.
  EXPECT_EQ(parts.kept->input().dtype, DType::float32);
  EXPECT_EQ(parts.kept->with({})->input(), (Field{DType::uint8, {3, 32, 32}}));
  EXPECT_THROW(Numbers(3).with({}), ValueError);
}

TEST(TensorDataset, RowsOfTensors) {
  const TensorDataset set(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}), Tensor::from<std::uint8_t>({4, 0, 2}, {3}));
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.classes(), 5);
  EXPECT_EQ(set.input(), (Field{DType::float32, {2}}));
  EXPECT_EQ(set.target(), (Field{DType::int64, {}}));
  DataLoader loader(set, {.batch = 2});
  const auto first = loader.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->input.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(first->target.to_vector<std::int64_t>(), (std::vector<std::int64_t>{4, 0}));
  EXPECT_THROW(TensorDataset(Tensor::from<float>({1, 2}, {2}), Tensor::from<float>({1}, {1})), ShapeError);
}

TEST(DistributedSampler, RanksShareOneOrder) {
  for (const bool drop_last : {false, true}) {
    std::vector<std::vector<std::int64_t>> ranks;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const DistributedSampler sampler(10, {.replicas = 3, .rank = rank, .seed = 5, .drop_last = drop_last});
      EXPECT_EQ(sampler.size(), drop_last ? 3 : 4);
      ranks.push_back(sampler.order(2));
      EXPECT_EQ(std::ssize(ranks.back()), sampler.size());
      EXPECT_NE(sampler.order(1), sampler.order(2));
    }
    const std::vector<std::int64_t> all = RandomSampler(10, 5).order(2);
    for (std::size_t i = 0; i < ranks[0].size() * 3; ++i) EXPECT_EQ(ranks[i % 3][i / 3], all[i % 10]);
  }
  EXPECT_EQ(DistributedSampler(4, {.replicas = 2, .rank = 1, .shuffle = false}).order(0),
            (std::vector<std::int64_t>{1, 3}));
  EXPECT_THROW(DistributedSampler(4, {.replicas = 2, .rank = 2}), ValueError);
}

TEST(WeightedRandomSampler, DrawsInProportion) {
  const WeightedRandomSampler sampler({1, 0, 3, 0}, 4000, true, 7);
  std::map<std::int64_t, int> counts;
  for (const std::int64_t index : sampler.order(0)) ++counts[index];
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts[2], 3000, 140);
  EXPECT_EQ(sampler.order(3), sampler.order(3));
  EXPECT_NE(sampler.order(0), sampler.order(1));
  int first = 0;
  for (std::int64_t epoch = 0; epoch < 1000; ++epoch) {
    const auto pair = WeightedRandomSampler({1, 0, 3}, 2, false).order(epoch);
    EXPECT_EQ(std::set<std::int64_t>(pair.begin(), pair.end()), (std::set<std::int64_t>{0, 2}));
    first += pair[0] == 2 ? 1 : 0;
  }
  EXPECT_NEAR(first, 750, 70);
  EXPECT_THROW(WeightedRandomSampler({1, 0, 3}, 3, false), ValueError);
  EXPECT_THROW(WeightedRandomSampler({0, 0}, 1), ValueError);
  EXPECT_THROW(WeightedRandomSampler({1, -1}, 1), ValueError);
}

}  // namespace
}  // namespace russet::data
