#pragma once
// Donation: outputs take over the memory of leaves that end with the plan.
#include <vector>

#include "compile/passes/spans.h"

namespace russet::compile::passes {

/// Gives outputs the memory of leaves: the leaf's last reader runs before the output's first writer, or is the same
/// step and reads in place; and nothing fails after that, or the leaf would be missed.
void donate(Program& program, const std::vector<Span>& spans, const Target& target);

}  // namespace russet::compile::passes
