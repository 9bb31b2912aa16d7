#include "compile/steady.h"

#include <algorithm>

#include "compile/failure.h"
#include "ops/table.h"

namespace russet::compile {
namespace {

/// Calls visit(primitive) for each primitive that a step is, or that it is a stage of.
void for_each_primitive(const Step& step, base::FunctionRef<void(const Primitive&)> visit) {
  for_each_member(step, [&](const Step& member) {
    const auto* const stage = std::get_if<Stage>(&member);
    const auto* const primitive = stage ? std::get_if<Primitive>(&stage->whole) : std::get_if<Primitive>(&member);
    if (primitive) visit(*primitive);
  });
}

/// Calls visit(group) for each group that a step is, or that a primitive has attached.
void for_each_group(const Step& step, base::FunctionRef<void(const Group&)> visit) {
  for_each_member(step, [&](const Step& member) {
    if (const Group* const group = group_of(member)) visit(*group);
  });
  for_each_primitive(step, [&](const Primitive& primitive) {
    visit(primitive.epilogue);
    for (const Group& prologue : primitive.prologues) visit(prologue);
  });
}

bool draws(const Step& step) {
  bool any = false;
  for_each_group(step, [&](const Group& group) {
    any |= std::ranges::any_of(group.code, [](const auto& in) { return in.kind == Instruction::Kind::random; });
  });
  for_each_primitive(step, [&](const Primitive& primitive) {
    // An attention that draws its random numbers itself has an input in no memory.
    any |= std::ranges::any_of(primitive.inputs, [](const Operand& input) {
      return input.access.slot < 0 && input.access.offset_argument >= 0;
    });
  });
  return any;
}

/// Which steps are steady, by what writes each slot.
class SteadySteps {
 public:
  SteadySteps(const Program& program, const Target& target)
      : program_(program), steady_(program.steps.size()), changes_(program.slots.size(), false) {
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      steady_[step] = !draws(program.steps[step]) && !may_fail(program.steps[step], target);
    }
    for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
      const Slot& place = program.slots[slot];
      const bool is_steady_leaf = place.kind == Slot::Kind::leaf && leaf(place).steady && !leaf(place).donatable;
      changes_[slot] = !is_steady_leaf && place.kind != Slot::Kind::temporary;
    }
  }

  std::vector<bool> found() {
    while (sweep()) {
    }
    if (!std::ranges::any_of(program_.steps, [&](const Step& step) { return is_steady(step) && reads_leaf(step); })) {
      steady_.assign(steady_.size(), false);
    }
    return steady_;
  }

 private:
  const Leaf& leaf(const Slot& slot) const { return program_.leaves[static_cast<std::size_t>(slot.index)]; }
  bool is_steady(const Step& step) const { return steady_[static_cast<std::size_t>(&step - program_.steps.data())]; }

  bool reads_leaf(const Step& step) const {
    bool reads = false;
    for_each_access(step, [&](std::int32_t slot, bool) {
      reads |= program_.slots[static_cast<std::size_t>(slot)].kind == Slot::Kind::leaf;
    });
    return reads;
  }

  /// What a step that is not steady writes changes, and so does what is computed of that.
  bool sweep() {
    bool any = false;
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      for_each_access(program_.steps[step], [&](std::int32_t slot, bool) {
        if (changes_[static_cast<std::size_t>(slot)]) steady_[step] = false;
      });
      if (steady_[step]) continue;
      for_each_access(program_.steps[step], [&](std::int32_t slot, bool writes) {
        const auto at = static_cast<std::size_t>(slot);
        if (writes && !changes_[at]) changes_[at] = true, any = true;
      });
    }
    return any;
  }

  const Program& program_;
  std::vector<bool> steady_;   // by step
  std::vector<bool> changes_;  // by slot: from run to run
};

}  // namespace

std::vector<bool> steady_values(const Program& program) {
  std::vector<bool> steady(program.values.size(), false);
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const Value& value = program.values[id];
    if (value.leaf >= 0) {
      steady[id] = program.leaves[static_cast<std::size_t>(value.leaf)].steady;
      continue;
    }
    bool reads_steady = false;
    bool reads_others = false;
    for (const ValueId input : value.inputs) {
      if (input < 0) continue;
      const ops::Op op = value_at(program, input).op;
      reads_steady |= steady[static_cast<std::size_t>(input)];
      reads_others |= !steady[static_cast<std::size_t>(input)] && op != ops::Op::scalar && op != ops::Op::constant;
    }
    steady[id] = reads_steady && !reads_others;
  }
  return steady;
}

std::vector<bool> steady_steps(const Program& program, const Target& target) {
  return SteadySteps(program, target).found();
}

std::vector<std::int32_t> arguments_of(const std::vector<Step>& steps) {
  std::vector<std::int32_t> arguments;
  const auto add = [&](std::int32_t argument) {
    if (argument >= 0) arguments.push_back(argument);
  };
  for (const Step& step : steps) {
    for_each_group(step, [&](const Group& group) {
      for (const Access& access : group.accesses) add(access.offset_argument);
      for (const Instruction& in : group.code) add(in.argument);
    });
    for_each_primitive(step, [&](const Primitive& primitive) {
      add(primitive.argument);
      add(primitive.output.access.offset_argument);
      for (const Operand& input : primitive.inputs) add(input.access.offset_argument);
      for (const Companion& companion : primitive.companions) add(companion.output.access.offset_argument);
    });
  }
  std::ranges::sort(arguments);
  const auto [first, last] = std::ranges::unique(arguments);
  arguments.erase(first, last);
  return arguments;
}

}  // namespace russet::compile
