// Prune: values that no output needs go; the rest moves up.
#include <algorithm>

#include "compile/passes/passes.h"

namespace russet::compile::passes {

void prune(Program& program, const Target&) {
  std::vector<bool> needed(program.values.size(), false);
  for (const Output& output : program.outputs) needed[static_cast<std::size_t>(output.value)] = true;
  for (const Leaf& leaf : program.leaves) needed[static_cast<std::size_t>(leaf.value)] = true;  // bound by position
  for (std::size_t id = program.values.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (const ValueId input : program.values[id].inputs) {
      if (input >= 0) needed[static_cast<std::size_t>(input)] = true;
    }
  }
  std::vector<ValueId> place(program.values.size(), -1);
  std::vector<Value> kept;
  kept.reserve(static_cast<std::size_t>(std::count(needed.begin(), needed.end(), true)));
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    if (!needed[id]) continue;
    Value value = std::move(program.values[id]);
    for (ValueId& input : value.inputs) {
      if (input >= 0) input = place[static_cast<std::size_t>(input)];
    }
    place[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(value));
  }
  program.values = std::move(kept);
  for (Output& output : program.outputs) output.value = place[static_cast<std::size_t>(output.value)];
  for (Leaf& leaf : program.leaves) leaf.value = place[static_cast<std::size_t>(leaf.value)];
}

}  // namespace russet::compile::passes
