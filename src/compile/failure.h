#pragma once
// Failures of plans: what may fail, which nodes of the work a step stands for, and what one that was cut short has
// left in memory.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "compile/plan.h"

namespace russet::compile {

/// Whether a value fails for some inputs: indices that nobody has checked, integers divided by what may be 0,
/// matrices that may be singular.
bool may_fail(const Program& program, const Value& value, const Target& target);
bool may_fail(const Step& step, const Target& target);
/// Whether such a step has written nothing yet when it fails.
bool fails_before_writing(const Step& step);
/// The step from which on nothing fails that is written any more: from there on the memory of leaves may be
/// overwritten, which a failure would have to give back.
std::size_t first_sure_step(const Program& program, const Target& target);

/// Thrown while a plan is made: a step that the device has no kernel for.
struct StepFailure {
  std::exception_ptr cause;
  std::vector<std::int32_t> nodes;  // that the step would have computed
};

/// The nodes of the work whose values the step stores.
std::vector<std::int32_t> nodes_of(const Program& program, const Step& step);

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
