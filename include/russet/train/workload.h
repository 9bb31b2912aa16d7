#pragma once
// Workload: one training step and one evaluation step of a model on made-up data, to be timed, profiled, or planned
// without running.
#include <russet/data/loader.h>
#include <russet/models.h>
#include <russet/optim.h>
#include <russet/runtime.h>
#include <russet/train/objective.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace russet::train {

struct Workload {
  std::string model;
  models::ModelOptions options{};
  std::int64_t batch = 1;
  std::int64_t accumulate = 1;
  /// Samples that a step takes at once, at most, if a batch is more than there is memory for (BatchParts).
  std::optional<std::int64_t> part{};
  /// Of matrix work: float32, or what Autocast takes. Gradients of float16 are scaled (amp::GradScaler).
  DType precision = DType::float32;
  Objective objective = Objective::cross_entropy;
  /// None: gradients accumulate and are never dropped.
  std::optional<optim::OptimizerChoice> optimizer{};
  /// Trains the classifier alone.
  bool freeze_encoder = false;
  double clip_grad = 0;
  double label_smoothing = 0;
  /// A sample's input and target; by default the model's own.
  std::optional<data::Field> input{};
  std::optional<data::Field> target{};
  /// Whether batches have an attention mask, as padded ones do.
  bool attention_mask = false;
};

/// What benchmarks run (models::Benchmark). Throws ValueError for an unknown name.
Workload benchmark_workload(const std::string& model);

class Workbench {
 public:
  Workbench(const Workload& workload, Device device);
  /// One step of training, and its loss, outside the tape; flushes, and does not wait.
  Tensor train_step();
  /// Logits, outside the tape, in evaluation mode; flushes, and does not wait.
  Tensor eval_step();

 private:
  Tensor loss(const data::Batch& batch);
  Workload workload_;
  models::Model model_;
  std::vector<Tensor> trained_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  amp::GradScaler scaler_;
  data::Batch batch_;
};

/// What a workload would do and need on a device, found out on the null device.
struct Forecast {
  std::vector<StepInfo> steps;  // of one step of the phase, in order
  std::size_t bytes_moved = 0;
  double operations = 0;       // floating-point operations, two for a multiply-add
  std::size_t peak_bytes = 0;  // parameters, gradients, optimizer state, inputs and temporaries
  std::size_t arena_bytes = 0;
  bool fits = true;  // in the memory that was granted; if not, peak_bytes is what the work would need that does not
};
enum class Phase : std::uint8_t { train, eval, both };
/// both: the steps are training's, the peak that of training and evaluation. `memory`: as under a limit of so many
/// bytes, where activations are computed again if there is no room to keep them.
Forecast forecast(const Workload& workload, Device device, Phase phase, std::string_view chip = {},
                  std::optional<std::size_t> memory = {});

}  // namespace russet::train
