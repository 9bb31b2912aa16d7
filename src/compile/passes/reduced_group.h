#pragma once
// A part of a group: some of what it stores, computed from what else it has stored where that is in memory still.
//   load x, r; s = x + r; y = gelu(s); store s, y       with s in memory, for y:       load s; y = gelu(s); store y
#include <optional>

#include "base/function_ref.h"
#include "compile/group.h"

namespace russet::compile::passes {

/// The code of `group` that stores what `is_wanted(slot)` holds for; what `is_in_memory(slot)` holds for is loaded
/// where the group computes it. The same instructions give the same bits, for a group rounds each value as if it were
/// stored. Nothing if the rest is no group that devices know.
std::optional<Group> reduced_group(const Group& group, base::FunctionRef<bool(std::int32_t)> is_wanted,
                                   base::FunctionRef<bool(std::int32_t)> is_in_memory);

}  // namespace russet::compile::passes
