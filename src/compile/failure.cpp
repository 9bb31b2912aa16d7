#include "compile/failure.h"

#include <algorithm>

#include "ops/table.h"

namespace russet::compile {

using ops::Op;

namespace {

bool is_integer_division(Op op, DType dtype) {
  return (op == Op::floor_divide || op == Op::fmod) && !is_floating(dtype);
}

bool reads_unchecked_indices(Op op, const ops::Attributes& attributes) {
  return (op == Op::take || op == Op::put) && !std::get<ops::Indexing>(attributes).checked;
}

bool meets_bad_matrices(Op op, const ops::Attributes& attributes) {
  if (op == Op::lu) return std::get<ops::Linalg>(attributes).invertible;
  return op == Op::cholesky || op == Op::eigh || op == Op::svd;
}

/// Whether the primitive fails for some values of its inputs, whatever the device.
bool fails_for_some_inputs(Op op, const ops::Attributes& attributes) {
  return reads_unchecked_indices(op, attributes) || meets_bad_matrices(op, attributes);
}

// Functions refuse to divide integers by a number that is 0, so what divides by a number divides.
bool may_divide_by_zero(const Group& group) {
  return std::any_of(group.code.begin(), group.code.end(), [&](const Instruction& in) {
    if (in.kind != Instruction::Kind::compute || !is_integer_division(in.op, in.dtype)) return false;
    const Instruction::Kind divisor = group.code[static_cast<std::size_t>(in.inputs[1])].kind;
    return divisor != Instruction::Kind::scalar && divisor != Instruction::Kind::constant;
  });
}

/// First and last steps that write and touch each slot; -1 for none.
struct Touches {
  std::vector<std::int32_t> first_write, last_write, first, last;

  explicit Touches(const Program& program)
      : first_write(program.slots.size(), -1), last_write(first_write), first(first_write), last(first_write) {
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      for_each_access(program.steps[step], [&](std::int32_t slot, bool writes) {
        const auto at = static_cast<std::size_t>(slot);
        const auto now = static_cast<std::int32_t>(step);
        if (first[at] < 0) first[at] = now;
        last[at] = now;
        if (!writes) return;
        if (first_write[at] < 0) first_write[at] = now;
        last_write[at] = now;
      });
    }
  }
};

bool allocates(const Program& program, const Slot& slot) {
  return slot.kind == Slot::Kind::output && program.outputs[static_cast<std::size_t>(slot.index)].donor < 0;
}

/// The value that a step leaves in a slot: in a leaf's, the output that takes the leaf's place; -1 for none.
ValueId value_written_to(const Program& program, std::int32_t slot) {
  const Slot& place = program.slots[static_cast<std::size_t>(slot)];
  if (place.kind != Slot::Kind::leaf) return place.value;
  const auto output = std::ranges::find(program.outputs, place.index, &Output::donor);
  return output == program.outputs.end() ? -1 : output->value;
}

}  // namespace

bool may_fail(const Program& program, const Value& value, const Target& target) {
  if (fails_for_some_inputs(value.op, value.attributes)) return true;
  if (target.integers_divide_by_zero() || !is_integer_division(value.op, value.dtype)) return false;
  const Op divisor = value_at(program, value.inputs[1]).op;
  return divisor != Op::scalar && divisor != Op::constant;
}

bool may_fail(const Step& step, const Target& target) {
  if (const auto* group = std::get_if<Group>(&step)) {
    return !target.integers_divide_by_zero() && may_divide_by_zero(*group);
  }
  const auto* primitive = std::get_if<Primitive>(&step);
  if (primitive == nullptr) return false;
  return fails_for_some_inputs(primitive->op, primitive->attributes) ||
         (!target.integers_divide_by_zero() && is_integer_division(primitive->op, primitive->output.access.dtype));
}

bool fails_before_writing(const Step& step) {
  const auto* primitive = std::get_if<Primitive>(&step);
  return primitive != nullptr && reads_unchecked_indices(primitive->op, primitive->attributes);
}

std::size_t first_sure_step(const Program& program, const Target& target) {
  for (std::size_t step = program.steps.size(); step-- > 0;) {
    if (may_fail(program.steps[step], target)) return fails_before_writing(program.steps[step]) ? step : step + 1;
  }
  return 0;
}

std::vector<std::int32_t> nodes_of(const Program& program, const Step& step) {
  std::vector<std::int32_t> nodes;
  const auto add = [&](std::int32_t slot, bool writes) {
    const ValueId value = writes ? value_written_to(program, slot) : -1;
    if (value >= 0) nodes.push_back(value_at(program, value).origin);
  };
  for_each_member(step, [&](const Step& member) {
    if (const auto* stage = std::get_if<Stage>(&member)) {
      std::visit([&](const auto& whole) { for_each_access(whole, add); }, stage->whole);
    } else {
      for_each_access(member, add);
    }
  });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Remains remains_of(const Program& program, std::size_t step, bool began) {
  const Touches touches(program);
  const auto now = static_cast<std::int32_t>(step);
  // An output that grew out of a leaf by overwriting parts of it has the leaf's slot.
  std::vector<std::size_t> places(program.outputs.size());
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    if (program.outputs[i].donor >= 0) places[i] = static_cast<std::size_t>(program.outputs[i].donor);
  }
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    if (program.slots[slot].kind == Slot::Kind::output) {
      places[static_cast<std::size_t>(program.slots[slot].index)] = slot;
    }
  }
  Remains remains;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const std::int32_t first = touches.first_write[places[i]];
    const bool is_complete = touches.last_write[places[i]] < now;
    if (is_complete) remains.complete.push_back(i);
    const bool is_begun = first >= 0 && (first < now || (first == now && began));
    if (is_begun && program.outputs[i].donor >= 0) {
      remains.overwritten.push_back(static_cast<std::size_t>(program.outputs[i].donor));
    }
  }
  return remains;
}

std::size_t step_beyond(const Program& program, std::size_t bytes) {
  const Touches touches(program);
  std::vector<std::int64_t> change(program.steps.size() + 1, 0);
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    if (touches.first[slot] < 0) continue;
    const auto size = static_cast<std::int64_t>(program.slots[slot].bytes);
    if (allocates(program, program.slots[slot])) {
      change[static_cast<std::size_t>(touches.first[slot])] += size;
    } else if (program.slots[slot].kind == Slot::Kind::temporary) {
      change[static_cast<std::size_t>(touches.first[slot])] += size;
      change[static_cast<std::size_t>(touches.last[slot]) + 1] -= size;
    }
  }
  std::int64_t taken = 0;
  std::int64_t most = -1;
  std::size_t largest = 0;
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    taken += change[step];
    if (taken > static_cast<std::int64_t>(bytes)) return step;
    if (taken > most) {
      most = taken;
      largest = step;
    }
  }
  return largest;
}

}  // namespace russet::compile
