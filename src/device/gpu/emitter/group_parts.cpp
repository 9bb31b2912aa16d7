#include "device/gpu/emitter/group_parts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compile/part_of_group.h"

namespace russet::gpu {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

bool adds_up_columns(const Group& group) {
  return std::ranges::any_of(
      group.code, [](const Instruction& in) { return in.kind == Kind::reduce && in.extent == Extent::column; });
}

Group rows_of(const Group& row_group) {
  compile::PartOfGroup part(row_group, Group::Kind::row);
  for (std::size_t i = 0; i < row_group.code.size(); ++i) {
    const Instruction& in = row_group.code[i];
    if (in.extent != Extent::column || in.kind == Kind::reduce) part.add(i, in.extent);
  }
  return part.finish();
}

Group column_results_of(const Group& group) {
  const Extent of_results = group.kind == Group::Kind::row ? Extent::column : Extent::reduced;
  std::vector<bool> wanted(group.code.size(), false);
  for (std::size_t i = group.code.size(); i-- > 0;) {
    const Instruction& in = group.code[i];
    wanted[i] = wanted[i] || (in.kind == Kind::store && in.extent == of_results);
    if (!wanted[i] || in.kind == Kind::reduce) continue;
    for (const std::int16_t input : in.inputs) {
      if (input >= 0) wanted[static_cast<std::size_t>(input)] = true;
    }
  }
  compile::PartOfGroup part(group, Group::Kind::column);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    const Instruction& in = group.code[i];
    if (!wanted[i]) continue;
    const Extent extent = in.extent == of_results ? Extent::reduced : in.extent;
    std::optional<Instruction> placeholder;
    if (in.kind == Kind::reduce) {
      placeholder = Instruction{.kind = Kind::load, .dtype = group.code[static_cast<std::size_t>(in.inputs[0])].dtype};
    }
    part.add(i, extent, placeholder);
  }
  return part.finish();
}

}  // namespace russet::gpu
