// Updates: what puts pieces into an array that nobody needs as it was changes it where it lies.
//   group: store zeros to a             group: store zeros to a
//   put: copy a to b, add pieces        put: add pieces to a
//   group: read b                       group: read a
#include <algorithm>

#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

/// nullptr: it is none.
const Primitive* put_of(const Step& step) {
  const auto* const primitive = std::get_if<Primitive>(&step);
  return primitive != nullptr && primitive->op == ops::Op::put ? primitive : nullptr;
}

class Updates {
 public:
  explicit Updates(Program& program) : program_(program), last_(lives_of(program).last) {}

  void run() {
    std::vector<std::int32_t> memory(program_.slots.size());
    for (std::size_t slot = 0; slot < memory.size(); ++slot) memory[slot] = static_cast<std::int32_t>(slot);
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      const Primitive* const put = put_of(program_.steps[step]);
      if (put == nullptr || !may_change(*put, step)) continue;
      const std::int32_t base = put->inputs[0].access.slot;
      const std::int32_t result = put->output.access.slot;
      memory[static_cast<std::size_t>(result)] = memory[static_cast<std::size_t>(base)];
    }
    for (Step& step : program_.steps) {
      rename_slots(step, [&](std::int32_t slot) { return memory[static_cast<std::size_t>(slot)]; });
    }
  }

 private:
  const Slot& slot(std::int32_t number) const { return program_.slots[static_cast<std::size_t>(number)]; }
  bool is_temporary(std::int32_t number) const { return slot(number).kind == Slot::Kind::temporary; }

  /// Whether the array is the step's alone from here on, and the result lies as it does.
  bool may_change(const Primitive& put, std::size_t step) const {
    const Access& base = put.inputs[0].access;
    Access result = put.output.access;
    const auto reads_it = [&](const Operand& input) { return input.access.slot == base.slot; };
    if (std::ranges::count_if(put.inputs, reads_it) != 1 || !is_temporary(base.slot) || !is_temporary(result.slot)) {
      return false;
    }
    const bool is_last = last_[static_cast<std::size_t>(base.slot)] == static_cast<std::int32_t>(step);
    const bool has_room = slot(base.slot).bytes == slot(result.slot).bytes;
    result.slot = base.slot;
    return is_last && has_room && result == base;
  }

  Program& program_;
  std::vector<std::int32_t> last_;  // by slot: the last step that touches it
};

}  // namespace

void updates(Program& program, const Target&) {
  const bool has_puts = std::ranges::any_of(program.steps, [](const Step& step) { return put_of(step) != nullptr; });
  if (has_puts) Updates(program).run();
}

}  // namespace russet::compile::passes
