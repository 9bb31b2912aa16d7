#pragma once
// Failures of plans: which entries of the work a step stands for, and what one that was cut short has left in memory.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "compile/plan.h"

namespace russet::compile {

/// Thrown while a plan is made: a step that the device has no kernel for.
struct StepFailure {
  std::exception_ptr cause;
  std::vector<std::int32_t> entries;  // that the step would have computed
};

/// The entries of the work whose values the step stores.
std::vector<std::int32_t> entries_of(const Program& program, const Step& step);

/// What lies in memory after a plan was cut short.
struct Remains {
  std::vector<std::size_t> complete;     // outputs that are computed
  std::vector<std::size_t> overwritten;  // leaves whose values are gone
};
/// After steps before `step` ran, and this one began to write if `began`.
Remains remains_of(const Program& program, std::size_t step, bool began);

/// The first step for which outputs and temporaries take more than `bytes`; if there is none, the one for which they
/// take most.
std::size_t step_beyond(const Program& program, std::size_t bytes);

}  // namespace russet::compile
