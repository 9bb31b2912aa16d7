#pragma once
// Whether a run fits its memory, found out before it starts.
#include <russet/train/workload.h>

#include "options.h"
#include "run/task.h"

namespace russet::app {

/// What a step of the run does. `arguments` are complete.
train::Workload run_workload(const Arguments& arguments, const Task& task);

/// Throws OutOfMemoryError if training and evaluation need more than `budget` bytes on the run's device; the error says
/// what is needed, what there is, and which batch size would fit. Returns what is needed.
std::uint64_t require_memory(const Arguments& arguments, const Task& task, std::uint64_t budget);

}  // namespace russet::app
