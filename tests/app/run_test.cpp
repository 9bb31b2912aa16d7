// Runs of the command line: the learning rate, the log, and runs that stop and go on.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/runtime.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "run/learning_rate.h"
#include "run/trainer.h"

namespace russet::app {
namespace {

namespace fs = std::filesystem;

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("russet-run-" + std::to_string(::getpid()));
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
  Arguments small_run(const std::string& name) const {
    Arguments arguments("train");
    arguments.set("model", "lenet5");
    arguments.set("data", "tensors:" + (folder_ / "data.safetensors").string());
    arguments.set("holdout", 0.25);
    arguments.set("batch", 16);
    arguments.set("accumulate", 3);
    arguments.set("dropout", 0.3);
    arguments.set("optimizer", "adam");
    arguments.set("lr", 1e-3);
    arguments.set("epochs", 3);
    arguments.set("warmup", 2);
    arguments.set("clip-grad", 1.0);
    arguments.set("label-smoothing", 0.1);
    arguments.set("workers", 2);
    arguments.set("out", (folder_ / name).string());
    return arguments;
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

TEST(LearningRate, CosineFallsFromTheFullRateToAlmostNothing) {
  const LearningRate rate{"cosine", 0.4, 0, 100};
  EXPECT_DOUBLE_EQ(rate.at(0), 0.4);
  EXPECT_NEAR(rate.at(50), 0.2, 1e-12);
  EXPECT_NEAR(rate.at(25), 0.4 * (0.5 + std::sqrt(0.5) / 2), 1e-12);
  EXPECT_LT(rate.at(99), 0.001);
}

TEST(LearningRate, StepsGoToATenthAndAHundredth) {
  const LearningRate rate{"step", 1.0, 0, 100};
  EXPECT_DOUBLE_EQ(rate.at(49), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(50), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(75), 0.01);
}

TEST(LearningRate, WarmupGrowsEvenly) {
  const LearningRate rate{"none", 0.8, 4, 10};
  EXPECT_DOUBLE_EQ(rate.at(0), 0.2);
  EXPECT_DOUBLE_EQ(rate.at(1), 0.4);
  EXPECT_DOUBLE_EQ(rate.at(3), 0.8);
  EXPECT_DOUBLE_EQ(rate.at(9), 0.8);
}

TEST_F(RunTest, LogIsCutBack) {
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

TEST_F(RunTest, StoppedAndResumedEqualsNeverStopped) {
  const Result whole = Trainer(small_run("whole")).run();
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.epochs.size(), 3U);
  // Asked to stop after every single step: the flag is always up.
  std::atomic<bool> stop{true};
  Callbacks callbacks;
  callbacks.stop = &stop;
  Result part = Trainer(small_run("parts")).run(callbacks);
  EXPECT_EQ(part.steps, 1);
  EXPECT_FALSE(part.finished);
  int runs = 1;
  for (; !part.finished; ++runs) part = Trainer(folder_ / "parts", Arguments("train")).run(callbacks);
  EXPECT_EQ(runs, whole.steps);
  EXPECT_EQ(part.steps, whole.steps);
  expect_same_run(folder_ / "whole", folder_ / "parts");
}

TEST_F(RunTest, AScalerIsResumed) {
  std::atomic<bool> stop{true};
  Callbacks callbacks;
  callbacks.stop = &stop;
  const auto run = [&](const std::string& folder) {
    Arguments arguments = small_run(folder);
    arguments.set("precision", "fp16");
    return arguments;
  };
  const Result whole = Trainer(run("whole")).run();
  Result part = Trainer(run("parts")).run(callbacks);
  while (!part.finished) part = Trainer(folder_ / "parts", Arguments("train")).run(callbacks);
  EXPECT_EQ(part.steps, whole.steps);
  expect_same_run(folder_ / "whole", folder_ / "parts");
}

TEST_F(RunTest, EveryOptimizerIsResumed) {
  std::atomic<bool> stop{true};
  Callbacks callbacks;
  callbacks.stop = &stop;
  for (const std::string& name : optim::list_optimizers()) {
    SCOPED_TRACE(name);
    const auto run = [&](const std::string& folder) {
      Arguments arguments = small_run(name + folder);
      arguments.set("optimizer", name);
      arguments.remove("epochs");
      arguments.set("steps", 4);
      return arguments;
    };
    Trainer(run("whole")).run();
    EXPECT_FALSE(Trainer(run("parts")).run(callbacks).finished);
    EXPECT_FALSE(Trainer(folder_ / (name + "parts"), Arguments("train")).run(callbacks).finished);
    EXPECT_TRUE(Trainer(folder_ / (name + "parts"), Arguments("train")).run().finished);
    expect_same_run(folder_ / (name + "whole"), folder_ / (name + "parts"));
  }
}

TEST_F(RunTest, WhatAKilledRunLoggedBehindItsCheckpointIsDoneAgain) {
  Arguments arguments = small_run("run");
  std::atomic<bool> stop{true};
  Callbacks callbacks;
  callbacks.stop = &stop;
  Trainer(arguments).run(callbacks);
  std::ofstream(folder_ / "run" / "log.jsonl", std::ios::app) << "{\"step\":2,\"loss\":9,\"lr\":9,\"ms\":9}\n{\"ste";
  Trainer(folder_ / "run", Arguments("train")).run();
  Trainer(small_run("whole")).run();
  expect_same_run(folder_ / "whole", folder_ / "run");
}

TEST_F(RunTest, ResumeRefusesOtherOptions) {
  std::atomic<bool> stop{true};
  Callbacks callbacks;
  callbacks.stop = &stop;
  Trainer(small_run("run")).run(callbacks);
  Arguments other("train");
  other.set("lr", 0.5);
  EXPECT_THROW(Trainer(folder_ / "run", other), ValueError);
  EXPECT_THROW(Trainer(folder_ / "nowhere", Arguments("train")), FileError);
  Arguments same("train");
  same.set("model", "lenet5");
  same.set("lr", 1e-3);
  EXPECT_NO_THROW(Trainer(folder_ / "run", same));
}

TEST_F(RunTest, AccumulatedBatchesEqualOneLargeBatch) {
  Arguments arguments = small_run("large");
  arguments.set("dropout", 0);
  arguments.set("shuffle", false);
  arguments.set("clip-grad", 0);
  arguments.set("label-smoothing", 0);
  arguments.set("optimizer", "sgd");
  arguments.set("lr", 0.05);
  arguments.remove("epochs");
  arguments.set("steps", 4);
  arguments.set("batch", 48);
  arguments.set("accumulate", 1);
  Trainer(arguments).run();
  arguments.set("out", (folder_ / "parts").string());
  arguments.set("batch", 16);
  arguments.set("accumulate", 3);
  Trainer(arguments).run();
  const History large = read_log(folder_ / "large" / "log.jsonl");
  const History parts = read_log(folder_ / "parts" / "log.jsonl");
  ASSERT_EQ(large.steps.size(), 4U);
  ASSERT_EQ(parts.steps.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(large.steps[i].loss, parts.steps[i].loss, 1e-5);
}

/// A run of three steps of large batches.
struct LargeBatches {
  std::vector<double> losses;
  std::optional<MemoryPlan> plan;
  std::vector<std::string> said;

  LargeBatches(Arguments arguments, std::optional<std::int64_t> memory) {
    arguments.set("data", "shapes");
    arguments.remove("holdout");
    arguments.remove("epochs");
    arguments.set("steps", 3);
    arguments.set("accumulate", 1);
    arguments.set("batch", 256);
    if (memory) arguments.set("memory", *memory);
    Trainer trainer(arguments);
    plan = trainer.memory_plan();
    Callbacks callbacks;
    callbacks.say = [&](const std::string& line) { said.push_back(line); };
    trainer.run(callbacks);
    set_memory_limit(std::nullopt);
    for (const StepRecord& step : read_log(fs::path(arguments.text("out")) / "log.jsonl").steps) {
      losses.push_back(step.loss);
    }
  }
};

TEST_F(RunTest, BatchesAreComputedInPartsWhereThereIsNoMemoryForMore) {
  const LargeBatches whole(small_run("whole"), std::nullopt);
  constexpr std::int64_t memory = 3 << 20;
  const LargeBatches parts(small_run("parts"), memory);
  ASSERT_TRUE(parts.plan && parts.plan->part);
  EXPECT_LT(*parts.plan->part, 256);
  EXPECT_LE(parts.plan->bytes, static_cast<std::uint64_t>(memory));
  ASSERT_EQ(parts.said.size(), 1U);
  EXPECT_NE(parts.said[0].find("in parts of at most"), std::string::npos) << parts.said[0];
  // The parts' dropout is the whole batch's.
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-3) << i;
}

TEST_F(RunTest, MemoryForLessThanASampleIsRefused) {
  Arguments arguments = small_run("run");
  arguments.set("data", "shapes");
  arguments.remove("holdout");
  arguments.set("memory", 100 << 10);
  try {
    const Trainer trainer(arguments);
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemoryError& error) {
    const std::string message = error.what();
    for (const char* word : {"needs", "100.0 KiB", "would fit"}) {
      EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  }
  EXPECT_FALSE(fs::exists(arguments.text("out")));
}

TEST_F(RunTest, WeightsCarryWhatTheyAreFor) {
  Arguments arguments = small_run("run");
  arguments.set("data", "shapes");
  arguments.remove("epochs");
  arguments.set("steps", 1);
  Trainer(arguments).run();
  const io::WeightsFile file(folder_ / "run" / "model.safetensors");
  const Card card = card_of(file, "lenet5");
  EXPECT_EQ(card.num_classes, 10);
  EXPECT_EQ(card.class_names.at(0), "circle");
  ASSERT_TRUE(card.image);
  EXPECT_EQ(card.image->size, 28);
  EXPECT_THROW(card_of(file, "mlp"), ValueError);
}

/// A run that leaves its weights as they are, but for what it makes anew.
Arguments idle(Arguments arguments) {
  arguments.remove("epochs");
  arguments.set("steps", 1);
  arguments.set("lr", 0);
  return arguments;
}

std::string error_of(const Arguments& arguments) {
  try {
    const Trainer trainer(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(RunTest, SimClrLearnsWithoutClasses) {
  Arguments arguments("train");
  arguments.set("model", "simclr_resnet18");
  arguments.set("data", "shapes");
  arguments.set("samples", 48);
  arguments.set("holdout", 0.25);
  arguments.set("width", 0.0625);
  arguments.set("batch", 12);
  arguments.set("epochs", 2);
  arguments.set("temperature", 0.2);
  arguments.set("out", (folder_ / "simclr").string());
  Trainer trainer(arguments);
  EXPECT_EQ(trainer.task().train->size(), 36);
  EXPECT_EQ(trainer.task().train->input().shape, (Shape{2, 3, 32, 32}));
  EXPECT_EQ(trainer.task().bank->input().shape, (Shape{3, 32, 32}));
  EXPECT_EQ(trainer.task().card.objective(), train::Objective::contrastive);
  const Result result = trainer.run();
  ASSERT_EQ(result.epochs.size(), 2U);
  for (const EpochRecord& epoch : result.epochs) {
    EXPECT_GT(epoch.loss, 0);
    EXPECT_LT(epoch.loss, 12);
    ASSERT_TRUE(epoch.accuracy.has_value());
    EXPECT_FALSE(epoch.test_loss.has_value());
  }
  for (const auto& refuse : {std::function<void(Arguments&)>([](Arguments& a) { a.set("augment", "none"); }),
                             std::function<void(Arguments&)>([](Arguments& a) { a.set("classes", 20); }),
                             std::function<void(Arguments&)>([](Arguments& a) { a.set("model", "resnet18_cifar"); })}) {
    Arguments wrong = arguments;
    refuse(wrong);
    EXPECT_THROW(Trainer{wrong}, ValueError);
  }
}

TEST_F(RunTest, ClassesReplaceTheHeadAndLoadTheRest) {
  Arguments arguments = idle(small_run("first"));
  Trainer(arguments).run();
  const StateDict first = io::load_safetensors(folder_ / "first" / "model.safetensors");
  const fs::path elsewhere = folder_ / "elsewhere.safetensors";
  StateDict headless;
  for (const auto& [name, tensor] : first) {
    if (!name.starts_with("c.4.")) headless.insert(name, tensor);
  }
  io::save_safetensors(elsewhere, headless);  // without a card
  arguments.set("seed", 1);
  arguments.set("out", (folder_ / "second").string());
  for (const fs::path& weights : {folder_ / "first" / "model.safetensors", elsewhere}) {
    arguments.set("weights", weights.string());
    for (const std::int64_t classes : {10, 12}) {
      arguments.set("classes", classes);
      Trainer(arguments).run();
      const io::WeightsFile file(folder_ / "second" / "model.safetensors");
      EXPECT_EQ(card_of(file, "lenet5").num_classes, classes);
      const StateDict second = file.tensors();
      EXPECT_EQ(second.size(), first.size());
      for (const auto& [name, tensor] : headless) EXPECT_EQ(second.at(name).to_bytes(), tensor.to_bytes()) << name;
      EXPECT_EQ(second.at("c.4.weight").sizes(), (Shape{classes, 84}));
      EXPECT_NE(second.at("c.4.weight").to_bytes(), first.at("c.4.weight").to_bytes());
    }
  }
  arguments.remove("classes");
  EXPECT_NE(error_of(arguments).find("there is no tensor \"c.4.weight\""), std::string::npos) << error_of(arguments);
  EXPECT_NE(error_of(arguments).find("--classes N makes a new one"), std::string::npos) << error_of(arguments);
}

TEST_F(RunTest, ClassesMustHoldThoseOfTheData) {
  Arguments arguments = idle(small_run("run"));
  arguments.set("classes", 9);
  EXPECT_NE(error_of(arguments).find("--classes 9: "), std::string::npos) << error_of(arguments);
  EXPECT_NE(error_of(arguments).find("has 10 classes"), std::string::npos) << error_of(arguments);
  arguments.set("classes", 11);
  Trainer(arguments).run();
  const fs::path weights = folder_ / "run" / "model.safetensors";
  EXPECT_EQ(card_of(io::WeightsFile(weights), "lenet5").num_classes, 11);
  io::save_safetensors(folder_ / "more.safetensors", {{"x", randn({24, 1, 12, 12})}, {"y", arange(24) % 12}});
  arguments.remove("classes");
  arguments.set("data", "tensors:" + (folder_ / "more.safetensors").string());
  arguments.set("weights", weights.string());
  EXPECT_NE(error_of(arguments).find("has 12 classes, but the weights are for 11 classes"), std::string::npos)
      << error_of(arguments);
  arguments.set("classes", 12);
  EXPECT_EQ(error_of(arguments), "nothing was thrown");
}

TEST_F(RunTest, WeightsThatDoNotFitAreListed) {
  Arguments arguments = idle(small_run("run"));
  Trainer(arguments).run();
  StateDict weights;
  for (const auto& [name, tensor] : io::load_safetensors(folder_ / "run" / "model.safetensors")) {
    if (name == "f.3.bias") {
      weights.insert("f.7.bias", tensor);
    } else {
      weights.insert(name, name == "c.0.bias" ? tensor.narrow(0, 0, 5).clone() : tensor);
    }
  }
  io::save_safetensors(folder_ / "other.safetensors", weights);
  arguments.set("weights", (folder_ / "other.safetensors").string());
  for (const bool replace_head : {false, true}) {
    if (replace_head) arguments.set("classes", 10);
    const std::string message = error_of(arguments);
    EXPECT_NE(message.find("other.safetensors: "), std::string::npos) << message;
    EXPECT_NE(message.find("missing: f.3.bias\n"), std::string::npos) << message;
    EXPECT_NE(message.find("unexpected: f.7.bias\n"), std::string::npos) << message;
    EXPECT_NE(message.find("of another shape: c.0.bias ([5] in the state dict, [120] in the module)"),
              std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace russet::app
