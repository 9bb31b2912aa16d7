// Common subexpressions: values computed alike from the same inputs become one.
//   b = exp(a); c = exp(a); d = b + c      ->      b = exp(a); d = b + b
#include <unordered_set>

#include "base/hash.h"
#include "compile/passes/passes.h"
#include "ops/attributes_hash.h"

namespace russet::compile::passes {
namespace {

std::uint64_t hash_of(const Value& value) {
  std::uint64_t hash = base::mix(static_cast<std::uint64_t>(value.op), static_cast<std::uint64_t>(value.dtype));
  for (const ValueId input : value.inputs) {
    if (input >= 0) hash = base::mix(hash, static_cast<std::uint64_t>(input));
  }
  hash = base::mix(base::mix(hash, value.shape), static_cast<std::uint64_t>(value.argument + 1));
  return base::mix(hash, ops::hash_of(value.attributes));
}

bool compute_the_same(const Value& a, const Value& b) {
  return a.op == b.op && a.dtype == b.dtype && a.shape == b.shape && a.inputs == b.inputs && a.argument == b.argument &&
         a.strides == b.strides && a.again == b.again && a.attributes == b.attributes;
}

}  // namespace

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
    // Memory without values is written piece by piece: two results that begin with the same piece would need a copy.
    if (value.op == ops::Op::empty || value.leaf >= 0) continue;
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
