#include <fmt/format.h>
#include <russet/error.h>
#include <russet/train/memory.h>

#include <algorithm>

namespace russet::train {
namespace {

std::uint64_t needed(Workload workload, Device device, std::int64_t batch) {
  workload.batch = batch;
  return forecast(workload, device, Phase::both).peak_bytes;
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

Workload workload_of(const Options& options, const Task& task) {
  Workload workload;
  workload.model = options.model;
  workload.options = task.card.model_options();
  if (options.dropout) workload.options.dropout = options.dropout;
  workload.batch = std::min(*options.batch, task.train->size());
  workload.accumulate = std::min<std::int64_t>(*options.accumulate, 2);
  workload.lower_precision = options.lower_precision();
  workload.objective = task.card.regression ? Objective::squared_error : Objective::cross_entropy;
  workload.optimizer =
      optim::OptimizerChoice{*options.optimizer, *options.lr, *options.momentum, *options.weight_decay};
  workload.clip_grad = *options.clip_grad;
  workload.label_smoothing = *options.label_smoothing;
  workload.input = task.train->input();
  workload.target = task.train->target();
  return workload;
}

std::uint64_t require_memory(const Options& options, const Task& task, std::uint64_t budget) {
  const Workload workload = workload_of(options, task);
  const std::uint64_t need = needed(workload, options.on(), workload.batch);
  if (need <= budget) return need;
  std::int64_t batch = workload.batch / 2;
  while (batch >= 1 && needed(workload, options.on(), batch) > budget) batch /= 2;
  const std::string advice = batch >= 1 ? fmt::format(
                                              "--batch {0} would fit (with --accumulate {1} a step covers {2} "
                                              "samples as before)",
                                              batch, *options.accumulate * (workload.batch / batch),
                                              batch * *options.accumulate * (workload.batch / batch))
                                        : "no batch size would fit: choose a smaller model";
  throw OutOfMemoryError(fmt::format("training {} at batch {} needs {}. {}.", options.model, workload.batch,
                                     need_and_grant(need, budget), advice));
}

}  // namespace russet::train
