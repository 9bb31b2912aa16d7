#include "compile/passes/step_order.h"

#include <optional>

namespace russet::compile::passes {
namespace {

/// Which steps touched a piece of memory since something was written there.
struct Uses {
  std::optional<std::size_t> writer;
  std::vector<std::size_t> readers;
};

/// The slot whose memory a slot has: the leaf's that an output takes over (leaves have the first slots), or its own.
std::size_t memory_of(const Program& program, std::int32_t slot) {
  const Slot& place = program.slots[static_cast<std::size_t>(slot)];
  const std::int32_t donor =
      place.kind == Slot::Kind::output ? program.outputs[static_cast<std::size_t>(place.index)].donor : -1;
  return static_cast<std::size_t>(donor < 0 ? slot : donor);
}

}  // namespace

StepOrder::StepOrder(const Program& program) {
  std::vector<Uses> uses(program.slots.size());
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    waits_for_.emplace_back(step);
    const auto each = [&](bool writing) {
      for_each_access(program.steps[step], [&](std::int32_t slot, bool writes) {
        if (writes != writing) return;
        Uses& use = uses[memory_of(program, slot)];
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
