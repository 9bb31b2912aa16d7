#include "compile/same_value.h"

#include "base/hash.h"
#include "ops/attributes_hash.h"

namespace russet::compile {

std::uint64_t hash_of(const Value& value) {
  std::uint64_t hash = base::mix(static_cast<std::uint64_t>(value.op), static_cast<std::uint64_t>(value.dtype));
  for (const ValueId input : value.inputs) {
    if (input >= 0) hash = base::mix(hash, static_cast<std::uint64_t>(input));
  }
  hash = base::mix(base::mix(hash, value.shape), static_cast<std::uint64_t>(value.argument) + 1);
  return base::mix(hash, ops::hash_of(value.attributes));
}

bool compute_the_same(const Value& a, const Value& b) {
  return a.op == b.op && a.dtype == b.dtype && a.shape == b.shape && a.inputs == b.inputs && a.argument == b.argument &&
         a.strides == b.strides && a.again == b.again && a.attributes == b.attributes;
}

bool is_shared(const Value& value) {
  // Memory without values is written piece by piece: two results that begin with the same piece would need a copy.
  return value.op != ops::Op::empty && value.leaf < 0;
}

}  // namespace russet::compile
