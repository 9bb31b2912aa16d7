#pragma once
// Steady values: what an evaluation computes of parameters alone, once for many runs; see the pass hoist.
#include <vector>

#include "compile/program.h"

namespace russet::compile {

/// By value: whether it is computed of steady leaves and numbers alone, of one leaf at least.
std::vector<bool> steady_values(const Program& program);

/// Which of the program's steps depend on nothing but steady leaves and write nothing but what such steps alone write.
/// None of them can fail or draws random numbers.
std::vector<bool> steady_steps(const Program& program, const Target& target);

/// The run-time arguments that steps read, ascending.
std::vector<std::int32_t> arguments_of(const std::vector<Step>& steps);

}  // namespace russet::compile
