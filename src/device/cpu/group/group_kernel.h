#pragma once
// The tile interpreter: runs groups on the CPU without a compiler at run time.
#include <memory>

#include "compile/group.h"
#include "compile/step.h"

namespace russet::cpu {

/// A kernel for `group`: a bytecode of SIMD loops over tiles that stay in the cache. Its results depend on the group
/// alone, not on the number of threads. Throws TypeError for an operator that a type does not have, InternalError for
/// a group that contradicts itself.
std::unique_ptr<compile::Kernel> make_group_kernel(const compile::Group& group);
/// Likewise for elementwise groups that do not depend on each other: their tiles share the threads.
std::unique_ptr<compile::Kernel> make_bundle_kernel(const compile::Bundle& bundle);

}  // namespace russet::cpu
