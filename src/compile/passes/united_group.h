#pragma once
// From a row group and a column group over the same elements to one group that does what both do.
#include <optional>

#include "compile/group.h"

namespace russet::compile::passes {

/// The row group that does what two groups do, the first before the second: one a row group, the other a column group,
/// whose reductions become column sums. What both load or compute is computed once, and what the first stores for the
/// second to load is at hand. Nothing if they have other elements, if one overwrites what the other touches, or if the
/// second needs what the first has only when all elements are done.
std::optional<Group> united_group(const Group& first, const Group& second);

}  // namespace russet::compile::passes
