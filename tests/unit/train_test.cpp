// The training loop: schedules, options, the log, and runs that stop and go on.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/train.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace russet::train {
namespace {

namespace fs = std::filesystem;

class TrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("russet-train-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    io::save_safetensors(folder_ / "data.safetensors",
                         {{"x", randn({samples, 1, 12, 12})}, {"y", arange(samples) % 10}});
  }
  static constexpr std::int64_t samples = 256;
  void TearDown() override { fs::remove_all(folder_); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  /// A few images, dropout and three batches a step: everything that a checkpoint must remember.
  Options small_run(const std::string& name) const {
    Options options;
    options.model = "lenet5";
    options.data = "tensors:" + (folder_ / "data.safetensors").string();
    options.holdout = 0.25;
    options.batch = 16;
    options.accumulate = 3;
    options.dropout = 0.3;
    options.optimizer = "adam";
    options.lr = 1e-3;
    options.epochs = 3;
    options.warmup = 2;
    options.clip_grad = 1.0;
    options.label_smoothing = 0.1;
    options.workers = 2;
    options.out = folder_ / name;
    return options;
  }

  static void expect_same_run(const fs::path& a, const fs::path& b) {
    for (const char* name : {"model.safetensors", "best.safetensors"}) {
      EXPECT_TRUE(content(a / name) == content(b / name)) << name;
    }
    const History one = read_log(a / "log.jsonl");
    const History other = read_log(b / "log.jsonl");
    ASSERT_EQ(one.steps.size(), other.steps.size());
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_EQ(one.steps[i].step, other.steps[i].step);
      EXPECT_EQ(one.steps[i].loss, other.steps[i].loss);
      EXPECT_EQ(one.steps[i].lr, other.steps[i].lr);
    }
    ASSERT_EQ(one.epochs.size(), other.epochs.size());
    for (std::size_t i = 0; i < one.epochs.size(); ++i) {
      EXPECT_EQ(one.epochs[i].loss, other.epochs[i].loss);
      EXPECT_EQ(one.epochs[i].accuracy, other.epochs[i].accuracy);
    }
  }

  fs::path folder_;
};

TEST(Schedule, CosineFallsFromTheFullRateToAlmostNothing) {
  const Schedule schedule{"cosine", 0.4, 0, 100};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.4);
  EXPECT_NEAR(schedule.at(50), 0.2, 1e-12);
  EXPECT_NEAR(schedule.at(25), 0.4 * (0.5 + std::sqrt(0.5) / 2), 1e-12);
  EXPECT_LT(schedule.at(99), 0.001);
}

TEST(Schedule, StepsGoToATenthAndAHundredth) {
  const Schedule schedule{"step", 1.0, 0, 100};
  EXPECT_DOUBLE_EQ(schedule.at(49), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(75), 0.01);
}

TEST(Schedule, WarmupGrowsEvenly) {
  const Schedule schedule{"none", 0.8, 4, 10};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.8);
}

TEST(Sizes, ParseAsPeopleWriteThem) {
  EXPECT_EQ(parse_size("2.5GiB"), 2684354560U);
  EXPECT_EQ(parse_size("512 MB"), 512000000U);
  EXPECT_EQ(parse_size("64k"), 65536U);
  EXPECT_EQ(parse_size("1000"), 1000U);
  for (const char* wrong : {"", "GiB", "1XB", "-1", "nan", "1e40TB", "1GiB2"}) {
    EXPECT_THROW(parse_size(wrong), ValueError) << wrong;
  }
}

TEST(TrainOptions, SurviveJson) {
  Options options;
  options.model = "mlp";
  options.data = "tensors:\"odd\"";
  options.lr = 0.1;
  options.shuffle = false;
  const Options back = options_from_json(to_json(with_defaults(options)));
  EXPECT_EQ(back.data, options.data);
  EXPECT_EQ(back.lr, 0.1);
  EXPECT_EQ(back.shuffle, false);
  EXPECT_EQ(to_json(back), to_json(with_defaults(options)));
  EXPECT_THROW(options_from_json("{\"lr\": \"fast\"}"), FileError);
}

TEST(TrainOptions, DifferencesNameWhatWasGiven) {
  Options started;
  started.model = "mlp";
  started.lr = 0.1;
  Options given;
  given.lr = 0.2;
  given.seed = 3;
  const std::vector<std::string> found = differences(given, started);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "--lr 0.2 (it was 0.1)");
  EXPECT_EQ(found[1], "--seed 3 (it was not given)");
  EXPECT_TRUE(differences(Options{}, started).empty());
}

TEST_F(TrainTest, LogIsCutBack) {
  const fs::path path = folder_ / "log.jsonl";
  std::uint64_t bytes = 0;
  {
    Log log(path, 0);
    log.add(StepRecord{1, 0.5, 0.1, 2.0});
    bytes = log.sync();
    log.add(StepRecord{2, std::nan(""), 0.1, 2.0});
    log.add(EpochRecord{1, 0.5, 0.25, 0.75});
  }
  EXPECT_EQ(bytes, std::string("{\"step\":1,\"loss\":0.5,\"lr\":0.1,\"ms\":2.0}\n").size());
  const History whole = read_log(path);
  ASSERT_EQ(whole.steps.size(), 2U);
  EXPECT_TRUE(std::isnan(whole.steps[1].loss));
  ASSERT_EQ(whole.epochs.size(), 1U);
  EXPECT_EQ(whole.epochs[0].accuracy, 0.25);
  { const Log log(path, bytes); }
  EXPECT_EQ(content(path), "{\"step\":1,\"loss\":0.5,\"lr\":0.1,\"ms\":2.0}\n");
  EXPECT_THROW(Log(path, bytes + 1), FileError);
  write(path, "{\"step\":1}\nnoise\n");
  EXPECT_THROW(read_log(path), FileError);
}

TEST_F(TrainTest, StoppedAndResumedEqualsNeverStopped) {
  const Result whole = Trainer(small_run("whole")).run();
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.epochs.size(), 3U);
  // Asked to stop after every single step: the flag is always up.
  std::atomic<bool> stop{true};
  Hooks hooks;
  hooks.stop = &stop;
  Result part = Trainer(small_run("parts")).run(hooks);
  EXPECT_EQ(part.steps, 1);
  EXPECT_FALSE(part.finished);
  int runs = 1;
  for (; !part.finished; ++runs) part = Trainer(folder_ / "parts", Options{}).run(hooks);
  EXPECT_EQ(runs, whole.steps);
  EXPECT_EQ(part.steps, whole.steps);
  expect_same_run(folder_ / "whole", folder_ / "parts");
}

TEST_F(TrainTest, WhatAKilledRunLoggedBehindItsCheckpointIsDoneAgain) {
  Options options = small_run("run");
  std::atomic<bool> stop{true};
  Hooks hooks;
  hooks.stop = &stop;
  Trainer(options).run(hooks);
  std::ofstream(folder_ / "run" / "log.jsonl", std::ios::app) << "{\"step\":2,\"loss\":9,\"lr\":9,\"ms\":9}\n{\"ste";
  Trainer(folder_ / "run", Options{}).run();
  Trainer(small_run("whole")).run();
  expect_same_run(folder_ / "whole", folder_ / "run");
}

TEST_F(TrainTest, ResumeRefusesOtherOptions) {
  std::atomic<bool> stop{true};
  Hooks hooks;
  hooks.stop = &stop;
  Trainer(small_run("run")).run(hooks);
  Options other;
  other.lr = 0.5;
  EXPECT_THROW(Trainer(folder_ / "run", other), ValueError);
  EXPECT_THROW(Trainer(folder_ / "nowhere", Options{}), FileError);
  Options same;
  same.model = "lenet5";
  same.lr = 1e-3;
  EXPECT_NO_THROW(Trainer(folder_ / "run", same));
}

TEST_F(TrainTest, AccumulatedBatchesEqualOneLargeBatch) {
  Options options = small_run("large");
  options.dropout = 0;
  options.shuffle = false;
  options.clip_grad = 0;
  options.label_smoothing = 0;
  options.optimizer = "sgd";
  options.lr = 0.05;
  options.epochs.reset();
  options.steps = 4;
  options.batch = 48;
  options.accumulate = 1;
  Trainer(options).run();
  options.out = folder_ / "parts";
  options.batch = 16;
  options.accumulate = 3;
  Trainer(options).run();
  const History large = read_log(folder_ / "large" / "log.jsonl");
  const History parts = read_log(folder_ / "parts" / "log.jsonl");
  ASSERT_EQ(large.steps.size(), 4U);
  ASSERT_EQ(parts.steps.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(large.steps[i].loss, parts.steps[i].loss, 1e-5);
}

TEST_F(TrainTest, MemoryIsRefusedWithABatchThatFits) {
  Options options = small_run("run");
  options.data = "shapes";
  options.holdout.reset();
  options.accumulate = 1;
  options.batch = 256;
  options.memory = 8 << 20;
  try {
    const Trainer trainer(options);
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemoryError& error) {
    const std::string message = error.what();
    const std::size_t at = message.find("--batch ");
    ASSERT_NE(at, std::string::npos) << message;
    options.batch = std::stoll(message.substr(at + 8));
  }
  EXPECT_LT(*options.batch, 256);
  EXPECT_FALSE(fs::exists(options.out));
  Trainer trainer(options);
  EXPECT_LE(*trainer.planned_bytes(), *options.memory);
  set_memory_limit(std::nullopt);
}

TEST_F(TrainTest, WeightsCarryWhatTheyAreFor) {
  Options options = small_run("run");
  options.data = "shapes";
  options.epochs.reset();
  options.steps = 1;
  Trainer(options).run();
  const io::SafetensorsFile file(folder_ / "run" / "model.safetensors");
  const Card card = card_of(file, "lenet5");
  EXPECT_EQ(card.num_classes, 10);
  EXPECT_EQ(card.class_names.at(0), "circle");
  ASSERT_TRUE(card.image);
  EXPECT_EQ(card.image->size, 28);
  EXPECT_THROW(card_of(file, "mlp"), ValueError);
}

}  // namespace
}  // namespace russet::train
