// Arena: every temporary gets a fixed place, so that those that live at the same time do not overlap and the whole is
// small. Largest first, each at the lowest gap that fits (the "greedy by size" of Pisarchyk and Lee, "Efficient memory
// management for deep neural net inference", 2020). Outputs take over the memory of leaves that end with the plan.
#include <algorithm>

#include "compile/failure.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

constexpr std::size_t alignment = 64;

struct Span {
  std::int32_t slot;
  std::size_t bytes;
  std::int32_t first;
  std::int32_t last;
  std::size_t offset = 0;
};

std::vector<Span> lifetimes(const Program& program) {
  std::vector<Span> spans;
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    spans.push_back({static_cast<std::int32_t>(slot), program.slots[slot].bytes, -1, -1});
  }
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    for_each_access(program.steps[step], [&](std::int32_t slot, bool) {
      Span& span = spans[static_cast<std::size_t>(slot)];
      if (span.first < 0) span.first = static_cast<std::int32_t>(step);
      span.last = static_cast<std::int32_t>(step);
    });
  }
  return spans;
}

std::size_t place(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first; });
  std::size_t total = 0;
  std::vector<Span*> placed;  // by offset
  for (Span& span : spans) {
    std::size_t offset = 0;
    for (const Span* other : placed) {
      if (other->last < span.first || other->first > span.last) continue;
      if (other->offset >= offset + span.bytes) break;
      offset = std::max(offset, (other->offset + other->bytes + alignment - 1) / alignment * alignment);
    }
    span.offset = offset;
    total = std::max(total, offset + span.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &span,
                                   [](const Span* a, const Span* b) { return a->offset < b->offset; }),
                  &span);
  }
  return (total + alignment - 1) / alignment * alignment;
}

/// Whether every instruction that reads the leaf comes before the first store to the output: a device may use loaded
/// memory in place, so nothing may look at it after the store.
bool reads_before_store(const Group& group, std::int32_t leaf, std::int32_t output) {
  const auto slot_of = [&](const Instruction& in) { return group.accesses[static_cast<std::size_t>(in.access)].slot; };
  bool stored = false;
  for (const Instruction& in : group.code) {
    if (stored && in.kind == Instruction::Kind::load && slot_of(in) == leaf) return false;
    for (const std::int16_t input : in.inputs) {
      if (!stored || input < 0) continue;
      const Instruction& read = group.code[static_cast<std::size_t>(input)];
      if (read.kind == Instruction::Kind::load && slot_of(read) == leaf) return false;
    }
    if (in.kind == Instruction::Kind::store && slot_of(in) == output) stored = true;
  }
  return true;
}

/// Whether a group reads the leaf only where, and before, it writes the output.
bool reads_in_place(const Group& group, std::int32_t leaf, std::int32_t output) {
  if (group.kind != Group::Kind::elementwise) return false;
  const Access* target = nullptr;
  for (const Access& access : group.accesses) {
    if (access.slot == output) {
      if (target) return false;
      target = &access;
    }
  }
  if (!target) return false;
  const bool same_places = std::all_of(group.accesses.begin(), group.accesses.end(), [&](const Access& access) {
    return access.slot != leaf || (access.strides == target->strides && access.offset == 0 && target->offset == 0 &&
                                   access.offset_argument < 0 && access.dtype == target->dtype);
  });
  return same_places && reads_before_store(group, leaf, output);
}

/// Likewise for a contraction: its epilogue alone.
bool reads_in_place(const Primitive& primitive, std::int32_t leaf, std::int32_t output) {
  const auto is_leaf = [&](const Access& access) { return access.slot == leaf; };
  const auto reads_leaf = [&](const Group& group) {
    return std::any_of(group.accesses.begin(), group.accesses.end(), is_leaf);
  };
  if (std::any_of(primitive.inputs.begin(), primitive.inputs.end(),
                  [&](const Operand& input) { return is_leaf(input.access); })) {
    return false;
  }
  if (std::any_of(primitive.prologues.begin(), primitive.prologues.end(), reads_leaf)) return false;
  return reads_in_place(primitive.epilogue, leaf, output);
}

bool reads_in_place(const Stage& stage, std::int32_t leaf, std::int32_t output) {
  return std::visit([&](const auto& whole) { return reads_in_place(whole, leaf, output); }, stage.whole);
}

/// Likewise for a step: of a bundle, whose members run in any order, one alone may touch the two.
bool reads_in_place(const Step& step, bool epilogues, std::int32_t leaf, std::int32_t output) {
  int touching = 0;
  bool in_place = false;
  for_each_work(step, [&](const Step& work) {
    bool touches = false;
    for_each_access(work, [&](std::int32_t slot, bool) { touches |= slot == leaf || slot == output; });
    if (!touches) return;
    ++touching;
    const auto* group = std::get_if<Group>(&work);
    const auto* primitive = std::get_if<Primitive>(&work);
    const auto* stage = std::get_if<Stage>(&work);
    in_place = (group != nullptr && reads_in_place(*group, leaf, output)) ||
               (epilogues && primitive != nullptr && reads_in_place(*primitive, leaf, output)) ||
               (epilogues && stage != nullptr && reads_in_place(*stage, leaf, output));
  });
  return touching == 1 && in_place;
}

/// Outputs that may lie where a leaf lay: the leaf's last reader runs before the output's first writer, or is the same
/// step and reads in place; and nothing fails after that, or the leaf would be missed.
void donate(Program& program, const std::vector<Span>& spans, const Target& target) {
  const auto first = static_cast<std::int32_t>(first_sure_step(program, target));
  std::vector<bool> taken(program.leaves.size(), false);
  for (const Output& output : program.outputs) {
    if (output.donor >= 0) taken[static_cast<std::size_t>(output.donor)] = true;
  }
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    if (program.slots[slot].kind != Slot::Kind::output || spans[slot].first < first) continue;
    Output& output = program.outputs[static_cast<std::size_t>(program.slots[slot].index)];
    if (output.donor >= 0) continue;
    std::int32_t best = -1;
    for (std::size_t leaf = 0; leaf < program.leaves.size(); ++leaf) {
      if (!program.leaves[leaf].donatable || taken[leaf] || program.slots[leaf].bytes != program.slots[slot].bytes)
        continue;
      const Span& life = spans[leaf];
      const bool same_step = life.last == spans[slot].first;
      if (life.last > spans[slot].first) continue;
      if (same_step &&
          !reads_in_place(program.steps[static_cast<std::size_t>(life.last)], target.epilogues_update_in_place(),
                          static_cast<std::int32_t>(leaf), static_cast<std::int32_t>(slot))) {
        continue;
      }
      if (best < 0 || same_step) best = static_cast<std::int32_t>(leaf);
      if (same_step) break;
    }
    if (best < 0) continue;
    output.donor = best;
    taken[static_cast<std::size_t>(best)] = true;
  }
}

}  // namespace

void arena(Program& program, const Target& target) {
  std::vector<Span> spans = lifetimes(program);
  donate(program, spans, target);
  std::vector<Span> temporaries;
  for (const Span& span : spans) {
    if (program.slots[static_cast<std::size_t>(span.slot)].kind == Slot::Kind::temporary && span.first >= 0) {
      temporaries.push_back(span);
    }
  }
  // Scratch of a step lives for that step alone; its size is known once the kernel is chosen.
  for (std::size_t step = 0; step < program.scratch.size(); ++step) {
    if (program.scratch[step] == 0) continue;
    const auto at = static_cast<std::int32_t>(step);
    temporaries.push_back({-1 - at, program.scratch[step], at, at});
  }
  program.arena_bytes = place(temporaries);
  for (const Span& span : temporaries) {
    if (span.slot >= 0) {
      program.slots[static_cast<std::size_t>(span.slot)].offset = span.offset;
    } else {
      program.scratch[static_cast<std::size_t>(-1 - span.slot)] = span.offset;
    }
  }
}

}  // namespace russet::compile::passes
