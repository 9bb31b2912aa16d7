#include "compile/part_of_group.h"

namespace russet::compile {

PartOfGroup::PartOfGroup(const Group& whole, Group::Kind kind)
    : whole_(whole),
      part_{kind, whole.space, whole.split, {}, {}},
      places_(whole.code.size(), -1),
      accesses_(whole.accesses.size(), -1) {}

void PartOfGroup::add(std::size_t i, Extent extent, std::optional<Instruction> input) {
  Instruction in = whole_.code[i];
  in.extent = extent;
  for (std::int16_t& read : in.inputs) {
    if (read >= 0) read = places_[static_cast<std::size_t>(read)];
  }
  if (input) in.inputs[0] = push(*input);
  if (in.access >= 0) in.access = access(in.access);
  places_[i] = push(in);
}

std::int16_t PartOfGroup::push(const Instruction& in) {
  part_.code.push_back(in);
  return static_cast<std::int16_t>(part_.code.size() - 1);
}

std::int16_t PartOfGroup::access(std::int16_t of_whole) {
  std::int16_t& own = accesses_[static_cast<std::size_t>(of_whole)];
  if (own < 0) {
    own = static_cast<std::int16_t>(part_.accesses.size());
    part_.accesses.push_back(whole_.accesses[static_cast<std::size_t>(of_whole)]);
  }
  return own;
}

}  // namespace russet::compile
