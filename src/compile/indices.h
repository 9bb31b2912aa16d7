#pragma once
// Checking the indices of a step on the host, before it runs.
#include "compile/step.h"

namespace russet::compile {

/// The index tensors of a take or put, in the order of the axes that they index.
std::span<const Operand> indices_of(const Primitive& primitive);
/// Throws IndexError if an index tensor of a take or put, in memory that the host can read by now, names nothing.
void require_indices(const Primitive& primitive, const Bindings& bindings);

}  // namespace russet::compile
