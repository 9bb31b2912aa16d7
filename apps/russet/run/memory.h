#pragma once
// Whether a run fits its memory, found out before it starts.
#include <russet/train/workload.h>

#include "options.h"
#include "run/task.h"

namespace russet::app {

/// What a step of the run does. `arguments` are complete.
train::Workload run_workload(const Arguments& arguments, const Task& task);

/// How a run keeps within its memory.
struct MemoryPlan {
  std::uint64_t bytes = 0;             // that training and evaluation take
  std::optional<std::int64_t> part{};  // how many samples are computed at once, if not whole batches (BatchParts)
};

/// Plans training and evaluation within `budget` bytes on the run's device: activations are computed again where there
/// is no room to keep them, and where that is not enough batches are computed in parts, if the loss is a mean over
/// samples. Throws OutOfMemoryError if that is not enough either; the error says what is needed, what there is, and
/// which batch size would fit.
MemoryPlan plan_memory(const Arguments& arguments, const Task& task, std::uint64_t budget);

}  // namespace russet::app
