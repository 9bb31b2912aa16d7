#pragma once
// How the CPU picks a kernel for a primitive: a list of implementations for each operator (compile/implementation.h).
#include "compile/implementation.h"

namespace russet::cpu {

using compile::accept;
using compile::decline;
using compile::KernelPtr;
using compile::Verdict;
using Implementation = compile::Implementation<>;

/// The implementations of an operator, from the specific to the plain; the last accepts everything.
std::span<const Implementation> implementations(ops::Op op);

/// The verdict of the first implementation that accepts; refusals go to the log if `log` is set. Not accepted, with the
/// last reason, if all decline.
Verdict choose(const compile::Primitive& primitive, bool log);

}  // namespace russet::cpu
