#pragma once
// Primitives that are groups of one instruction: what the compiler left outside a group.
#include <optional>

#include "compile/step.h"

namespace russet::compile {

/// The groups that compute `primitive`, to be run in order: elementwise, random and source operators, reductions,
/// strided reads and overwrites of row-major operands. Nothing for other operators.
std::optional<std::vector<Group>> as_groups(const Primitive& primitive);

}  // namespace russet::compile
