#pragma once
// Trainer: runs the loop, keeps its log, checkpoints and weights in a folder, and goes on where an earlier run stopped.
//
// The folder holds log.jsonl, model.safetensors (the last weights), best.safetensors (those of the best accuracy),
// checkpoint and report.html. Each file is written beside and renamed. A run that was killed at any moment and resumed
// ends with the same bits as one that was not.
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "options.h"
#include "run/log.h"
#include "run/memory.h"
#include "run/task.h"

namespace russet::app {

struct Result {
  std::int64_t steps = 0;  // done, all in all
  bool finished = false;   // false: stopped by request
  std::vector<EpochRecord> epochs;
  std::optional<double> accuracy{};       // of the last weights
  std::optional<double> best_accuracy{};  // of best.safetensors
  std::filesystem::path out;

  /// Epochs and the last accuracy, from what a log holds.
  void history_from(History history);
};

/// Where a run is.
struct Position {
  bool evaluating = false;
  std::int64_t epoch = 0;   // from 1
  std::int64_t epochs = 0;  // in all
  std::int64_t done = 0;    // steps of the run, or batches of the evaluation
  std::int64_t total = 0;
  std::int64_t samples = 0;  // in a step or batch
  double loss = 0;           // of the last step
};

struct Callbacks {
  /// Looked at after each step: true ends the run with a checkpoint.
  const std::atomic<bool>* stop = nullptr;
  /// Called a few times a second. It has its price: knowing the loss means waiting for the device.
  std::function<void(const Position&)> progress{};
  /// Called when an epoch's record is written, with its duration in seconds.
  std::function<void(const EpochRecord&, double)> epoch{};
  /// Called with a line that a person should read.
  std::function<void(const std::string&)> say{};
};

class Trainer {
 public:
  /// Opens data and model, and checks everything that can be wrong, memory included; writes nothing. Throws.
  explicit Trainer(const Arguments& arguments);
  /// Goes on from DIR/checkpoint. Options that were given must be those of the run, and the number of threads too.
  /// Throws ValueError, which says what differs, or FileError.
  Trainer(const std::filesystem::path& folder, const Arguments& given);
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  /// Trains to the end, or until asked to stop.
  Result run(const Callbacks& callbacks = {});

  const Arguments& arguments() const;
  const Task& task() const;
  models::Model& model();
  /// Steps done and in all; steps in an epoch.
  std::int64_t step() const;
  std::int64_t steps() const;
  std::int64_t steps_per_epoch() const;
  /// How the run keeps within --memory.
  const std::optional<MemoryPlan>& memory_plan() const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace russet::app
