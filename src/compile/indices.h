#pragma once
// Checking the indices of a step on the host, before it runs.
#include "compile/step.h"

namespace russet::compile {

/// Throws IndexError if an index tensor of a take or put, in memory that the host can read by now, names nothing.
void require_indices(const Primitive& primitive, const Bindings& bindings);

}  // namespace russet::compile
