#pragma once
// From a cluster of fusable values to a group's code.
#include <vector>

#include "compile/clusters.h"

namespace russet::compile {

/// While slots do not exist yet: a value's own number stands for its memory.
std::vector<std::int32_t> numbers_as_slots(const Program& program);

/// `slot_of`: the slot of each value in memory, -1 for others.
Group emit_group(const Program& program, const Cluster& cluster, const std::vector<std::int32_t>& slot_of);

/// The code of a contraction's epilogue: access 0 stands for the contraction's result. Axes are the result's own; if
/// there are reductions, the reduced ones come before the kept ones, both in their order.
Group emit_epilogue_group(const Program& program, const Cluster& cluster, ValueId contraction,
                          const std::vector<std::int32_t>& slot_of);

/// The code by which a contraction computes the elements of `value`: see Primitive::prologues.
Group emit_prologue_group(const Program& program, const Cluster& cluster, ValueId value,
                          const std::vector<std::int32_t>& slot_of);

/// What is part of a primitive; nullptr for groups that it lacks.
struct Attached {
  const Cluster* epilogue = nullptr;
  std::array<const Cluster*, 2> prologues{};
  std::vector<ValueId> companions;
};
Attached attached_to(const Program& program, const Cluster& cluster);

/// A primitive as a step.
Primitive emit_primitive(const Program& program, ValueId id, const Attached& attached,
                         const std::vector<std::int32_t>& slot_of);

/// The primitive that computes a value, before it is known what lies where: its operands' slots are numbers of values,
/// and each is taken to lie in memory by itself.
Primitive primitive_of(const Program& program, const Value& value);

/// The one value of the contraction's shape that the epilogue stores: the contraction itself, or what was made of it.
ValueId epilogue_output(const Program& program, ValueId contraction, const Cluster& cluster);

/// A group that copies a value's elements (read through `source`) to `target`.
Group emit_copy(const Shape& sizes, const Access& source, const Access& target);

/// How a value in memory, or a view of one, is read: strides over the value's own axes.
Access access_of(const Program& program, ValueId id, const std::vector<std::int32_t>& slot_of);

/// Merges neighbouring axes where every access allows it, and drops axes of size 1.
void merge_axes(Group& group);

}  // namespace russet::compile
