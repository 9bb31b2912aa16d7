#include "run/memory.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "run/defaults.h"
#include "run/mixing.h"

namespace russet::app {
namespace {

std::uint64_t needed(train::Workload workload, Device device, std::int64_t batch) {
  workload.batch = batch;
  return train::forecast(workload, device, train::Phase::both).peak_bytes;
}

/// "4.4 MiB and --memory grants 1 MiB", in bytes where they would read alike.
std::string need_and_grant(std::uint64_t need, std::uint64_t budget) {
  std::string needed = format_size(need);
  std::string granted = format_size(budget);
  if (needed == granted) {
    needed = fmt::format("{} bytes", need);
    granted = fmt::format("{} bytes", budget);
  }
  return fmt::format("{} and --memory grants {}", needed, granted);
}

}  // namespace

train::Workload run_workload(const Arguments& arguments, const Task& task) {
  train::Workload workload;
  workload.model = arguments.text("model");
  workload.options = task.card.model_options();
  if (arguments.has("dropout")) workload.options.dropout = arguments.real("dropout");
  workload.batch = std::min(arguments.integer("batch"), task.train->size());
  workload.accumulate = std::min<std::int64_t>(arguments.integer("accumulate"), 2);
  workload.precision = precision_type(arguments.text("precision"));
  workload.objective = task.card.objective();
  workload.optimizer = optimizer_of(arguments);
  workload.freeze_encoder = arguments.has("freeze");
  workload.clip_grad = arguments.real("clip-grad");
  workload.label_smoothing = arguments.real("label-smoothing");
  workload.input = task.train->input();
  workload.target = task.train->target();
  const data::Mixing mixing = mixing_of(arguments, task);
  if (mixing) workload.target = data::Field{DType::float32, {mixing.classes}};
  workload.attention_mask = task.card.text.has_value();
  return workload;
}

std::uint64_t require_memory(const Arguments& arguments, const Task& task, std::uint64_t budget) {
  const train::Workload workload = run_workload(arguments, task);
  const Device device(arguments.text("device"));
  const std::uint64_t need = needed(workload, device, workload.batch);
  if (need <= budget) return need;
  std::int64_t batch = workload.batch / 2;
  while (batch >= 1 && needed(workload, device, batch) > budget) batch /= 2;
  const std::int64_t parts = batch >= 1 ? arguments.integer("accumulate") * (workload.batch / batch) : 0;
  const std::string advice =
      batch >= 1 ? fmt::format("--batch {} would fit (with --accumulate {} a step covers {} samples as before)", batch,
                               parts, batch * parts)
                 : "no batch size would fit: choose a smaller model";
  throw OutOfMemoryError(fmt::format("training {} at batch {} needs {}. {}.", workload.model, workload.batch,
                                     need_and_grant(need, budget), advice));
}

}  // namespace russet::app
