#include "run/memory.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <functional>

#include "run/defaults.h"
#include "run/mixing.h"

namespace russet::app {
namespace {

/// What runs keep besides, such as losses that have not been read.
constexpr std::uint64_t reserve = std::uint64_t{64} << 10;

train::Forecast forecast(const train::Workload& workload, Device device, std::uint64_t budget) {
  return train::forecast(workload, device, train::Phase::both, {}, budget - std::min(budget, reserve));
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

namespace {

/// Whether the gradients of a batch are those of its parts, added up by their sizes.
bool is_mean_over_samples(train::Objective objective) { return objective != train::Objective::contrastive; }

/// The largest of the halves, quarters, ... of a batch for which `fits` says yes; 0 for none.
std::int64_t largest_part(std::int64_t batch, const std::function<bool(std::int64_t)>& fits) {
  while (batch > 1) {
    batch = (batch + 1) / 2;
    if (fits(batch)) return batch;
  }
  return 0;
}

std::string advice(const Arguments& arguments, const train::Workload& workload, Device device, std::uint64_t budget) {
  if (is_mean_over_samples(workload.objective)) {
    return "not even one sample at a time would fit: choose a smaller model";
  }
  const std::int64_t batch = largest_part(workload.batch, [&](std::int64_t smaller) {
    train::Workload other = workload;
    other.batch = smaller;
    return forecast(other, device, budget).fits;
  });
  if (batch == 0) return "no batch size would fit: choose a smaller model";
  const std::int64_t parts = arguments.integer("accumulate") * (workload.batch / batch);
  return fmt::format("--batch {} would fit (with --accumulate {} a step covers {} samples as before)", batch, parts,
                     batch * parts);
}

}  // namespace

MemoryPlan plan_memory(const Arguments& arguments, const Task& task, std::uint64_t budget) {
  train::Workload workload = run_workload(arguments, task);
  const Device device(arguments.text("device"));
  const train::Forecast whole = forecast(workload, device, budget);
  if (whole.fits) return {whole.peak_bytes, {}};
  MemoryPlan plan;
  if (is_mean_over_samples(workload.objective)) {
    plan.part = largest_part(workload.batch, [&](std::int64_t samples) {
      workload.part = samples;
      const train::Forecast parts = forecast(workload, device, budget);
      plan.bytes = parts.peak_bytes;
      return parts.fits;
    });
    if (*plan.part > 0) return plan;
    workload.part.reset();
  }
  throw OutOfMemoryError(fmt::format("training {} at batch {} needs {}. {}.", workload.model, workload.batch,
                                     need_and_grant(whole.peak_bytes, budget),
                                     advice(arguments, workload, device, budget)));
}

}  // namespace russet::app
