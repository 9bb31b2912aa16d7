#pragma once
// Whether a run fits its memory, found out before it starts.
#include <russet/train/options.h>
#include <russet/train/task.h>
#include <russet/train/workload.h>

namespace russet::train {

/// What a step of the run does. `options` are complete.
Workload workload_of(const Options& options, const Task& task);

/// Throws OutOfMemoryError if training and evaluation need more than `budget` bytes on the run's device; the error says
/// what is needed, what there is, and which batch size would fit. Returns what is needed.
std::uint64_t require_memory(const Options& options, const Task& task, std::uint64_t budget);

}  // namespace russet::train
