#include "compile/passes/reduced_group.h"

#include <algorithm>
#include <vector>

#include "compile/emit.h"
#include "compile/part_of_group.h"

namespace russet::compile::passes {
namespace {

using Kind = Instruction::Kind;
using IsSlot = base::FunctionRef<bool(std::int32_t)>;

std::int32_t stored_slot(const Group& group, const Instruction& in) {
  return in.kind == Kind::store ? group.accesses[static_cast<std::size_t>(in.access)].slot : -1;
}

/// Loads what is stored and still in memory.
void load_what_is_in_memory(Group& group, IsSlot is_in_memory) {
  for (const Instruction store : std::vector<Instruction>(group.code)) {
    const std::int32_t slot = stored_slot(group, store);
    if (slot < 0 || !is_in_memory(slot)) continue;
    Instruction& value = group.code[static_cast<std::size_t>(store.inputs[0])];
    if (value.kind == Kind::load || value.extent != store.extent || value.dtype != store.dtype) continue;
    Instruction load{Kind::load};
    load.dtype = store.dtype;
    load.extent = store.extent;
    load.access = store.access;
    value = load;
  }
}

/// The instructions that the wanted stores depend on, and their accesses.
Group without_the_rest(const Group& group, IsSlot is_wanted) {
  std::vector<bool> needed(group.code.size(), false);
  for (std::size_t i = group.code.size(); i-- > 0;) {
    const Instruction& in = group.code[i];
    if (in.kind == Kind::store) needed[i] = is_wanted(stored_slot(group, in));
    if (!needed[i]) continue;
    for (const std::int16_t input : in.inputs) {
      if (input >= 0) needed[static_cast<std::size_t>(input)] = true;
    }
  }
  PartOfGroup rest(group, group.kind);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    if (needed[i]) rest.add(i, group.code[i].extent);
  }
  return rest.finish();
}

}  // namespace

std::optional<Group> reduced_group(const Group& group, IsSlot is_wanted, IsSlot is_in_memory) {
  Group loading = group;
  load_what_is_in_memory(loading, is_in_memory);
  Group rest = without_the_rest(loading, is_wanted);
  const auto reduces = [](const Instruction& in) { return in.kind == Kind::reduce; };
  if (rest.kind == Group::Kind::elementwise || std::any_of(rest.code.begin(), rest.code.end(), reduces)) {
    merge_axes(rest);
    return rest;
  }
  // Without reductions it is elementwise: what was constant along the reduced axes is read so, by strides of 0.
  for (Instruction& in : rest.code) {
    if (in.kind == Kind::store && in.extent == Extent::reduced) return std::nullopt;
    in.extent = Extent::full;
  }
  rest.kind = Group::Kind::elementwise;
  rest.split = rest.space.rank();
  merge_axes(rest);
  return rest;
}

}  // namespace russet::compile::passes
