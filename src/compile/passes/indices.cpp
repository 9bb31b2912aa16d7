// Indices: what an earlier step has checked is not checked again, so that the step cannot fail.
//   y = take(x, i); ...; dx = put(zeros, dy, i)      ->      y = take(x, i); ...; dx = put(zeros, dy, i) (checked)
#include <algorithm>
#include <unordered_map>

#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// That the entries of an index are positions on an axis of a size.
struct Fact {
  Operand index;
  std::int64_t size;
  bool from_end;
  bool operator==(const Fact&) const = default;
};

class Facts {
 public:
  /// Whether the step, a take or put, needs no check any more; what it needs is known from then on.
  bool follow(const Primitive& primitive) {
    const auto& indexing = std::get<ops::Indexing>(primitive.attributes);
    std::size_t next = primitive.op == Op::take ? 1 : 2;
    bool known = true;
    for (int axis = 0; axis < indexing.axes; ++axis) {
      if (!indexing.is_by_tensor(axis)) continue;
      const Fact fact{primitive.inputs[next++], primitive.inputs[0].sizes[axis], indexing.from_end};
      std::vector<Fact>& facts = facts_[fact.index.access.slot];
      const bool found = std::find(facts.begin(), facts.end(), fact) != facts.end();
      known &= found;
      if (!found) facts.push_back(fact);
    }
    return known;
  }

  /// What lay in the slot before is gone.
  void forget(std::int32_t slot) { facts_.erase(slot); }

 private:
  std::unordered_map<std::int32_t, std::vector<Fact>> facts_;  // by the index's slot
};

}  // namespace

void indices(Program& program, const Target& /*target*/) {
  Facts facts;
  for (Step& step : program.steps) {
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes) facts.forget(slot);
    });
    auto* primitive = std::get_if<Primitive>(&step);
    if (primitive == nullptr || (primitive->op != Op::take && primitive->op != Op::put)) continue;
    auto& indexing = std::get<ops::Indexing>(primitive->attributes);
    if (!indexing.checked) indexing.checked = facts.follow(*primitive);
  }
}

}  // namespace russet::compile::passes
