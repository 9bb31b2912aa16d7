// Common subexpressions: values computed alike from the same inputs become one.
//   b = exp(a); c = exp(a); d = b + c      ->      b = exp(a); d = b + b
#include <unordered_map>

#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

std::uint64_t hash_of(const Value& value) {
  std::uint64_t hash = static_cast<std::uint64_t>(value.op) * 31 + static_cast<std::uint64_t>(value.dtype);
  for (const ValueId input : value.inputs) hash = hash * 0x100000001B3ULL + static_cast<std::uint64_t>(input + 1);
  for (const std::int64_t size : value.shape) hash = hash * 31 + static_cast<std::uint64_t>(size);
  return hash;
}

bool compute_the_same(const Value& a, const Value& b) {
  return a.op == b.op && a.dtype == b.dtype && a.shape == b.shape && a.inputs == b.inputs && a.leaf == b.leaf &&
         a.argument == b.argument && a.strides == b.strides && a.attributes == b.attributes;
}

}  // namespace

void share(Program& program, const Target&) {
  std::unordered_multimap<std::uint64_t, ValueId> seen;
  std::vector<ValueId> same(program.values.size());
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    Value& value = program.values[id];
    same[id] = static_cast<ValueId>(id);
    for (ValueId& input : value.inputs) {
      if (input >= 0) input = same[static_cast<std::size_t>(input)];
    }
    // Memory without values is written piece by piece: two results that begin with the same piece would need a copy.
    if (value.op == ops::Op::empty) continue;
    // Leaves and run-time arguments are distinct by nature (equality compares their positions).
    const std::uint64_t hash = hash_of(value);
    const auto [first, last] = seen.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (compute_the_same(value_at(program, it->second), value)) same[id] = it->second;
    }
    if (same[id] == static_cast<ValueId>(id)) seen.emplace(hash, same[id]);
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
