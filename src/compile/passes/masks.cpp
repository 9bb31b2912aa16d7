// Masks: booleans that an elementwise group leaves for later steps, as the places where a relu was positive, are stored
// four to a byte, if nothing but groups and what follows contractions reads them. Before:   After:
//   group: store x > 0                                              group: store x > 0, packed
//   convolution_input, then: read x > 0, choose                     convolution_input, then: read x > 0, packed, choose
#include <algorithm>
#include <vector>

#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

/// What touches a slot.
struct Uses {
  std::vector<Access*> accesses;
  std::vector<const Group*> groups;  // that are steps
  int writers = 0;
  bool is_in_groups = true;
};

/// Whether the access has elements of an array by their places in it.
bool is_counted_from_its_start(const Access& access) {
  return access.dtype == DType::boolean && access.offset == 0 && access.offset_argument < 0 &&
         std::ranges::all_of(access.strides, [](std::int64_t stride) { return stride >= 0; });
}

/// Whether the access has each of so many elements: it is dense, as what groups store is where it has no gaps.
bool has_all(const Access& access, const Shape& space, std::size_t count) {
  std::int64_t reach = 1;
  for (int axis = 0; axis < space.rank(); ++axis) reach += (space[axis] - 1) * access.strides[axis];
  return static_cast<std::size_t>(numel(space)) == count && static_cast<std::size_t>(reach) == count;
}

class Masks {
 public:
  Masks(Program& program, const Target& target) : program_(program), target_(target), uses_(program.slots.size()) {}

  void run() {
    for (Step& step : program_.steps) find_uses(step);
    for (std::size_t slot = 0; slot < uses_.size(); ++slot) {
      const Slot& place = program_.slots[slot];
      if (place.kind == Slot::Kind::temporary && place.bytes >= small_bytes && may_be_packed(uses_[slot])) pack(slot);
    }
  }

 private:
  Uses& uses_of(std::int32_t slot) { return uses_[static_cast<std::size_t>(slot)]; }

  void find_uses(Step& step) {
    if (auto* const group = std::get_if<Group>(&step)) return find_uses(*group, true);
    auto& primitive = std::get<Primitive>(step);
    const auto hold = [&](const Operand& operand) {
      if (operand.access.slot >= 0) uses_of(operand.access.slot).is_in_groups = false;
    };
    std::ranges::for_each(primitive.inputs, hold);
    hold(primitive.output);
    for (const Companion& companion : primitive.companions) hold(companion.output);
    for (Group& prologue : primitive.prologues) find_uses(prologue, false);
    find_uses(primitive.epilogue, false);
  }

  void find_uses(Group& group, bool is_step) {
    const std::vector<bool> written = written_accesses(group);
    for (std::size_t i = 0; i < group.accesses.size(); ++i) {
      Access& access = group.accesses[i];
      if (access.slot < 0) continue;
      Uses& uses = uses_of(access.slot);
      uses.accesses.push_back(&access);
      if (is_step) uses.groups.push_back(&group);
      uses.is_in_groups &= is_counted_from_its_start(access);
      if (!written[i]) continue;
      ++uses.writers;
      const Slot& slot = program_.slots[static_cast<std::size_t>(access.slot)];
      uses.is_in_groups &= is_step && has_all(access, group.space, slot.bytes);
    }
  }

  static bool may_be_packed(const Uses& uses) { return uses.is_in_groups && uses.writers == 1; }

  void pack(std::size_t slot) {
    const auto set = [&](bool packed) {
      for (Access* const access : uses_[slot].accesses) access->packed = packed;
    };
    set(true);
    const bool is_run =
        std::ranges::all_of(uses_[slot].groups, [&](const Group* group) { return target_.packs_masks(*group); });
    if (is_run) {
      program_.slots[slot].bytes /= 4;
    } else {
      set(false);
    }
  }

  Program& program_;
  const Target& target_;
  std::vector<Uses> uses_;  // by slot
};

}  // namespace

void masks(Program& program, const Target& target) { Masks(program, target).run(); }

}  // namespace russet::compile::passes
