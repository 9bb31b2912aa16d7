// Common subexpressions: values computed alike from the same inputs become one.
//   b = exp(a); c = exp(a); d = b + c      ->      b = exp(a); d = b + b
#include <unordered_set>

#include "compile/passes/passes.h"
#include "compile/same_value.h"

namespace russet::compile::passes {

void share(Program& program, const Target&) {
  std::vector<std::uint64_t> hashes(program.values.size());
  const auto hash = [&](ValueId id) { return static_cast<std::size_t>(hashes[static_cast<std::size_t>(id)]); };
  const auto equal = [&](ValueId a, ValueId b) {
    return hash(a) == hash(b) && compute_the_same(value_at(program, a), value_at(program, b));
  };
  std::unordered_set<ValueId, decltype(hash), decltype(equal)> seen(program.values.size(), hash, equal);
  std::vector<ValueId> same(program.values.size());
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    Value& value = program.values[id];
    same[id] = static_cast<ValueId>(id);
    for (ValueId& input : value.inputs) {
      if (input >= 0) input = same[static_cast<std::size_t>(input)];
    }
    if (!is_shared(value)) continue;
    hashes[id] = hash_of(value);
    same[id] = *seen.insert(same[id]).first;
  }
  std::vector<bool> is_output(program.values.size(), false);
  for (Output& output : program.outputs) {
    // Two outputs never share memory: the second stays a value of its own.
    const ValueId target = same[static_cast<std::size_t>(output.value)];
    if (!is_output[static_cast<std::size_t>(target)] && value_at(program, target).leaf < 0) output.value = target;
    is_output[static_cast<std::size_t>(output.value)] = true;
  }
}

}  // namespace russet::compile::passes
