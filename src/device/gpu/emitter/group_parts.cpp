#include "device/gpu/emitter/group_parts.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace russet::gpu {
namespace {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

/// Puts instructions of a group into another one.
class Part {
 public:
  Part(const Group& whole, Group::Kind kind)
      : whole_(whole),
        part_{kind, whole.space, whole.split, {}, {}},
        places_(whole.code.size(), -1),
        accesses_(whole.accesses.size(), -1) {}

  /// Adds instruction `i`, whose inputs are there, or `input` in place of its first.
  void add(std::size_t i, Extent extent, std::optional<Instruction> input = {}) {
    Instruction in = whole_.code[i];
    in.extent = extent;
    for (std::int16_t& read : in.inputs) {
      if (read >= 0) read = places_[static_cast<std::size_t>(read)];
    }
    if (input) in.inputs[0] = push(*input);
    if (in.access >= 0) in.access = access(in.access);
    places_[i] = push(in);
  }

  Group finish() { return std::move(part_); }

 private:
  std::int16_t push(const Instruction& in) {
    part_.code.push_back(in);
    return static_cast<std::int16_t>(part_.code.size() - 1);
  }

  std::int16_t access(std::int16_t of_whole) {
    std::int16_t& own = accesses_[static_cast<std::size_t>(of_whole)];
    if (own < 0) {
      own = static_cast<std::int16_t>(part_.accesses.size());
      part_.accesses.push_back(whole_.accesses[static_cast<std::size_t>(of_whole)]);
    }
    return own;
  }

  const Group& whole_;
  Group part_;
  std::vector<std::int16_t> places_, accesses_;  // in the part
};

}  // namespace

bool adds_up_columns(const Group& group) {
  return std::ranges::any_of(
      group.code, [](const Instruction& in) { return in.kind == Kind::reduce && in.extent == Extent::column; });
}

Group rows_of(const Group& row_group) {
  Part part(row_group, Group::Kind::row);
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
  Part part(group, Group::Kind::column);
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
