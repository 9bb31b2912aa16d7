#include "compile/passes/step_order.h"

#include <algorithm>
#include <optional>

namespace russet::compile::passes {
namespace {

/// Which steps touched a piece of memory since something was written there.
struct Uses {
  std::optional<std::size_t> writer;
  std::vector<std::size_t> readers;
};

/// By slot: the first slot of the same memory. An output that takes a leaf's memory lies in the leaf's slot.
std::vector<std::int32_t> memory_of_slots(const Program& program) {
  std::vector<std::int32_t> slot_of_leaf(program.leaves.size(), -1);
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    const Slot& place = program.slots[slot];
    if (place.kind == Slot::Kind::leaf)
      slot_of_leaf[static_cast<std::size_t>(place.index)] = static_cast<std::int32_t>(slot);
  }
  std::vector<std::int32_t> memory;
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    const Slot& place = program.slots[slot];
    const std::int32_t donor =
        place.kind == Slot::Kind::output ? program.outputs[static_cast<std::size_t>(place.index)].donor : -1;
    const std::int32_t lent = donor < 0 ? -1 : slot_of_leaf[static_cast<std::size_t>(donor)];
    memory.push_back(lent < 0 ? static_cast<std::int32_t>(slot) : lent);
  }
  return memory;
}

}  // namespace

StepOrder::StepOrder(const Program& program) {
  const std::vector<std::int32_t> memory = memory_of_slots(program);
  std::vector<Uses> uses(program.slots.size());
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    waits_for_.emplace_back(step);
    const auto each = [&](bool writing) {
      for_each_access(program.steps[step], [&](std::int32_t slot, bool writes) {
        if (writes != writing) return;
        Uses& use = uses[static_cast<std::size_t>(memory[static_cast<std::size_t>(slot)])];
        if (use.writer && *use.writer != step) wait(step, *use.writer);
        if (!writes) {
          use.readers.push_back(step);
          return;
        }
        for (const std::size_t reader : use.readers) {
          if (reader != step) wait(step, reader);
        }
        use = {step, {}};
      });
    };
    each(false);
    each(true);
  }
}

void StepOrder::wait(std::size_t later, std::size_t earlier) {
  std::vector<bool>& before = waits_for_[later];
  if (before[earlier]) return;
  before[earlier] = true;
  const std::vector<bool>& more = waits_for_[earlier];
  for (std::size_t step = 0; step < more.size(); ++step) {
    if (more[step]) before[step] = true;
  }
}

}  // namespace russet::compile::passes
