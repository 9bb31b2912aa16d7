// A program that runs out of memory at one batch size goes on at a smaller one, whoever set the limit.
#include <gtest/gtest.h>
#include <russet/russet.h>
#include <sys/resource.h>

#include <optional>
#include <vector>

#include "memory/process.h"

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};
constexpr std::size_t MiB = std::size_t{1} << 20;

/// RLIMIT_AS while this lives.
class AddressLimit {
 public:
  explicit AddressLimit(std::size_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

/// A small convolutional network with its optimizer: steps with batches of any size.
class Training {
 public:
  explicit Training(int layers = 2) {
    manual_seed(3);
    for (int i = 0; i < layers; ++i) {
      net_.push_back(nn::Conv2d(i == 0 ? 3 : 16, 16, 3, {.padding = 1}));
      net_.push_back(nn::ReLU());
    }
    net_.push_back(nn::AdaptiveAvgPool2d(1));
    net_.push_back(nn::Flatten());
    net_.push_back(nn::Linear(16, 10));
    optimizer_.emplace(net_.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    images_ = randn({64, 3, 64, 64});
    labels_ = remainder(arange(64), 10);
    flush();
  }

  void step(std::int64_t batch) {
    const Tensor loss = cross_entropy(net_(images_.slice(0, {0, batch})), labels_.slice(0, {0, batch}));
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
  }

  /// The most memory that steps of this size take.
  std::size_t peak_of(std::int64_t batch) {
    reset_peak_memory(cpu);
    for (int i = 0; i < 2; ++i) step(batch);
    return peak_memory(cpu);
  }

  std::vector<std::vector<std::byte>> weights() const {
    std::vector<std::vector<std::byte>> all;
    for (const Tensor& parameter : net_.parameters()) all.push_back(parameter.to_bytes());
    return all;
  }

 private:
  nn::Sequential net_;
  std::optional<optim::SGD> optimizer_;
  Tensor images_;
  Tensor labels_;
};

/// What a program ends with that never tried a larger batch.
std::vector<std::vector<std::byte>> undisturbed(int steps, std::int64_t batch) {
  Training training;
  for (int i = 0; i < steps; ++i) training.step(batch);
  return training.weights();
}

TEST(OutOfMemory, UnderALimitOfOursASmallerBatchGoesOn) {
  const std::vector<std::vector<std::byte>> expected = undisturbed(4, 16);
  // Not enough for the larger batch, however much is computed again.
  const std::size_t limit = Training().peak_of(16) + MiB;
  reset_peak_memory(cpu);
  Training training;
  training.step(16);
  for (int attempt = 0; attempt < 3; ++attempt) {
    set_memory_limit(limit);
    EXPECT_THROW(training.step(64), OutOfMemoryError);
    EXPECT_NO_THROW(training.step(16));
    set_memory_limit(std::nullopt);
  }
  EXPECT_EQ(training.weights(), expected);
}

TEST(OutOfMemory, UnderALimitOfOursActivationsAreComputedAgain) {
  const auto train = [](std::size_t& peak, std::optional<std::size_t> limit) {
    Training training(6);
    reset_peak_memory(cpu);
    set_memory_limit(limit);
    for (int i = 0; i < 2; ++i) EXPECT_NO_THROW(training.step(32));
    // More is in use now than when the plan was made.
    const Tensor held = ones({static_cast<std::int64_t>(MiB) / 4}).clone();
    EXPECT_NO_THROW(flush());
    for (int i = 0; i < 2; ++i) EXPECT_NO_THROW(training.step(32));
    peak = peak_memory(cpu);
    set_memory_limit(std::nullopt);
    return training.weights();
  };
  std::size_t freely = 0;
  std::size_t limited = 0;
  const std::vector<std::vector<std::byte>> expected = train(freely, std::nullopt);
  const std::size_t limit = freely - freely / 8;
  EXPECT_EQ(train(limited, limit), expected);
  EXPECT_LE(limited, limit);
}

// A transformer under a limit that no recomputation reaches: the error comes, and training goes on with more.
TEST(OutOfMemory, WhatCannotBeMadeToFitIsAnErrorAndTrainingGoesOn) {
  train::Workload workload;
  workload.model = "bert_base";
  workload.options.width = 0.1;
  workload.options.config = {{"vocab_size", 100}, {"num_hidden_layers", 2}};
  workload.options.num_classes = 6;
  workload.batch = 4;
  workload.optimizer = optim::OptimizerChoice{.name = "adamw", .lr = 1e-3};
  train::Workbench bench(workload, cpu);
  for (int i = 0; i < 2; ++i) bench.train_step();
  synchronize();
  reset_peak_memory(cpu);
  const std::size_t in_use = memory_in_use(cpu);
  bench.train_step();
  synchronize();
  const std::size_t freely = peak_memory(cpu);
  for (int attempt = 0; attempt < 2; ++attempt) {
    reset_peak_memory(cpu);
    set_memory_limit(in_use + (std::size_t{1} << 16));
    EXPECT_THROW(bench.train_step(), OutOfMemoryError);
    set_memory_limit(freely - (freely - in_use) / 8);
    EXPECT_NO_THROW(bench.train_step());
    set_memory_limit(std::nullopt);
    EXPECT_NO_THROW(bench.train_step());
  }
}

TEST(OutOfMemory, UnderTheSystemsLimitABatchOfHalfTheSizeGoesOn) {
  const std::vector<std::vector<std::byte>> expected = undisturbed(8, 32);
  std::size_t half = 0;
  std::size_t whole = 0;
  {
    Training probe;
    half = probe.peak_of(32);
    whole = probe.peak_of(64);
  }
  reset_peak_memory(cpu);
  Training training;
  for (int i = 0; i < 2; ++i) training.step(32);
  const std::size_t needed = process_memory().addresses;
  for (const double share : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
    const AddressLimit limit(needed + static_cast<std::size_t>(share * static_cast<double>(whole - half)));
    EXPECT_THROW(training.step(64), OutOfMemoryError) << share;
    EXPECT_NO_THROW(training.step(32)) << share;
  }
  EXPECT_EQ(training.weights(), expected);
}

TEST(OutOfMemory, WhileAPlanIsMadeIsAnErrorLikeAnyOther) {
  Training training;
  for (int i = 0; i < 2; ++i) training.step(16);
  int refused = 0;
  for (std::int64_t batch = 1; batch <= 12; ++batch) {
    const AddressLimit limit(process_memory().addresses + static_cast<std::size_t>(batch - 1) * 8 * MiB);
    try {
      training.step(batch);
    } catch (const OutOfMemoryError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, 1);
  EXPECT_LT(refused, 12);
  EXPECT_NO_THROW(training.step(16));
}

}  // namespace
}  // namespace russet
