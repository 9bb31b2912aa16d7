#pragma once
// PartOfGroup: some instructions of a group, with the accesses that they need, as a group of its own.
#include <optional>
#include <vector>

#include "compile/group.h"

namespace russet::compile {

class PartOfGroup {
 public:
  PartOfGroup(const Group& whole, Group::Kind kind);
  /// Adds instruction `i` of the whole, whose inputs have been added, or `input` in place of its first.
  void add(std::size_t i, Extent extent, std::optional<Instruction> input = {});
  Group finish() { return std::move(part_); }

 private:
  std::int16_t push(const Instruction& in);
  std::int16_t access(std::int16_t of_whole);

  const Group& whole_;
  Group part_;
  std::vector<std::int16_t> places_, accesses_;  // in the part, of those of the whole
};

}  // namespace russet::compile
