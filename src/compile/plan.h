#pragma once
// Plan: a compiled program, ready to be replayed with other buffers and arguments.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/program.h"

namespace russet::compile {

struct Plan {
  Program program;
  std::vector<std::unique_ptr<Kernel>> kernels;  // one a step
  /// Which nodes of the work the outputs are.
  std::vector<std::int32_t> output_nodes;
  /// What makes the program's prepared slots, unless they are kept from an earlier run (its outputs, in order); nullptr
  /// if there are none. Its leaves and arguments have the numbers that they have here.
  std::shared_ptr<const Plan> preparation;
  /// The arguments that the preparation reads.
  std::vector<std::int32_t> prepared_arguments;
  /// Bytes of new outputs, and of all that a replay needs beyond its leaves: these, what is prepared, and the arena.
  std::size_t output_bytes = 0;
  std::size_t total_bytes = 0;
  /// What it was to make do with, if that was limited.
  std::optional<std::size_t> room;
  /// Bytes that the steps read and write, for counters and the profiler.
  std::vector<std::size_t> step_bytes;
  std::size_t moved_bytes = 0;
  /// For each step, the slots whose values begin with it: temporaries, and outputs in memory of their own.
  std::vector<std::vector<std::int32_t>> births;
  /// What the plan itself takes of the host's memory, about.
  std::size_t host_bytes = 0;
  bool only_launches = false;  // see Kernel
};

/// Runs the passes and picks the kernels. Where the plan would take more than `room` bytes (Plan::total_bytes), values
/// are computed again rather than kept, until it does not, or else as far as that goes. Throws StepFailure (failure.h)
/// for a step without a kernel.
Plan make_plan(Program program, const Target& target, std::optional<std::size_t> room = {});

/// The passes in order, for documentation and tests.
std::span<const Pass> pipeline(const Target& target);

/// Leaves out the pass of this name from now on; empty for none. For tests.
void disable_pass(std::string name);

/// Bytes read and written, and floating-point operations (two for a multiply-add), of a step.
std::size_t bytes_of(const Step& step);
double operations_of(const Step& step);
/// Of a contraction: the type of what it multiplies. Of several steps: the narrowest.
std::optional<DType> factors_of(const Step& step);

}  // namespace russet::compile
