#pragma once
// A training run: the model, its data and its place in the loop.
#include <russet/captured_function.h>
#include <russet/optim.h>
#include <russet/train.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "run/defaults.h"
#include "run/event_file.h"
#include "run/learning_rate.h"
#include "run/memory.h"
#include "run/state.h"
#include "run/trainer.h"

namespace russet::app {

class Trainer::Run {
 public:
  /// `checkpoint`: where to go on, from the file `name`.
  Run(RunState state, Task task, std::optional<io::Checkpoint> checkpoint, const std::string& name);
  ~Run();

  Result run(const Callbacks& callbacks);
  void mark_resumed() { resumed_ = true; }

  const Arguments& arguments() const { return state_.arguments; }
  const Task& task() const { return task_; }
  models::Model& model() { return *model_; }
  std::int64_t step() const { return state_.step; }
  std::int64_t total_steps() const;
  std::int64_t steps_per_epoch() const;
  const std::optional<MemoryPlan>& memory_plan() const { return memory_plan_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Unread;

  void check_inputs();
  void make_loaders();
  void prepare_folder();
  bool run_epoch(const Callbacks& callbacks);
  void say_how_memory_is_kept(const Callbacks& callbacks) const;
  train::BatchParts parts_of(data::Batch batch) const;
  void take_step(Clock::time_point& before);
  Tensor loss_on(const data::Batch& batch) const;
  Tensor take_whole_step(const data::Batch& batch);
  void read_losses();
  train::LossOptions loss_options() const;
  void evaluate(const Callbacks& callbacks, EpochRecord& record);
  void finish_epoch(const Callbacks& callbacks, Clock::time_point start);
  void keep_best(const EpochRecord& record);
  void write_weights(const char* name) const;
  void write_checkpoint();
  void write_report() const;
  void report_progress(const Callbacks& callbacks);
  std::filesystem::path out() const { return state_.arguments.text("out"); }
  Device device() const { return Device(state_.arguments.text("device")); }
  DType precision() const { return precision_type(state_.arguments.text("precision")); }

  RunState state_;
  Task task_;
  std::optional<MemoryPlan> memory_plan_;
  std::unique_ptr<models::Model> model_;
  std::vector<Tensor> trained_;  // parameters
  std::unique_ptr<optim::Optimizer> optimizer_;
  amp::GradScaler scaler_;
  const data::Batch* whole_batch_ = nullptr;
  CapturedFunction whole_step_;  // on whole_batch_
  std::unique_ptr<data::DataLoader> loader_;
  std::unique_ptr<data::DataLoader> test_loader_;
  std::unique_ptr<data::DataLoader> bank_loader_;
  LearningRate learning_rate_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<EventFile> events_;  // for --tensorboard
  std::unique_ptr<Unread> unread_;
  Clock::time_point reported_{};
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  bool resumed_ = false;
};

}  // namespace russet::app
