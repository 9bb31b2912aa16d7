// Pairs: results of an attention that read the same are computed by one kernel.
//   y = attention(q, k, v); l = attention_logsumexp(q, k)      ->      y, l = one step
//   the gradients of an attention for key and value            ->      one step, with that for the query where the
//                                                                      device has a kernel for all three
#include <algorithm>

#include "compile/cluster_order.h"
#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "ops/attention.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// Whether `part` reads nothing but what `whole` reads as the same.
bool reads_the_same(const Value& whole, const Value& part) {
  auto attributes = std::get<ops::Attention>(whole.attributes);
  auto others = std::get<ops::Attention>(part.attributes);
  const ops::AttentionInputs a = ops::attention_inputs(whole.op, attributes);
  const ops::AttentionInputs b = ops::attention_inputs(part.op, others);
  if (part.op == Op::attention_logsumexp) attributes.dropout = others.dropout = 0;
  if (!(attributes == others)) return false;
  const auto same = [&](int i, int j) {
    return j < 0 || (i >= 0 && whole.inputs[static_cast<std::size_t>(i)] == part.inputs[static_cast<std::size_t>(j)]);
  };
  return same(a.query, b.query) && same(a.key, b.key) && same(a.value, b.value) && same(a.gradient, b.gradient) &&
         same(a.logsumexp, b.logsumexp) && same(a.delta, b.delta) && same(a.mask, b.mask) && same(a.uniform, b.uniform);
}

void merge(Program& program, std::int32_t whole, std::int32_t part) {
  Cluster& kept = program.clusters[static_cast<std::size_t>(whole)];
  Cluster& gone = program.clusters[static_cast<std::size_t>(part)];
  const ValueId member = gone.members.front();
  kept.members.push_back(member);
  kept.stores.push_back(member);
  std::sort(kept.members.begin(), kept.members.end());
  std::sort(kept.stores.begin(), kept.stores.end());
  program.owner[static_cast<std::size_t>(member)] = whole;
  gone = {};
  gone.dead = true;
}

class Pairs {
 public:
  Pairs(Program& program, const Target& target)
      : program_(program), target_(target), order_(program), places_(numbers_as_slots(program)) {}

  void run() {
    join(Op::attention, Op::attention_logsumexp, false);
    join(Op::attention_key_gradient, Op::attention_value_gradient, false);
    join(Op::attention_key_gradient, Op::attention_query_gradient, true);
  }

 private:
  /// `asks`: the target, of pairs that a third one is to join.
  void join(Op whole, Op part, bool asks) {
    const std::vector<ValueId> wholes = found(whole);
    for (const ValueId one : found(part)) {
      const auto joined = std::ranges::find_if(wholes, [&](ValueId other) { return belongs(other, one, asks); });
      if (joined == wholes.end()) continue;
      order_.merge(owner(*joined), owner(one));
      merge(program_, owner(*joined), owner(one));
    }
  }

  std::vector<ValueId> found(Op op) const {
    std::vector<ValueId> values;
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      const std::int32_t owner = program_.owner[id];
      if (program_.values[id].op == op && owner >= 0 && !program_.clusters[static_cast<std::size_t>(owner)].dead) {
        values.push_back(static_cast<ValueId>(id));
      }
    }
    return values;
  }

  std::int32_t owner(ValueId id) const { return program_.owner[static_cast<std::size_t>(id)]; }
  const Cluster& cluster_of(ValueId id) const { return program_.clusters[static_cast<std::size_t>(owner(id))]; }

  bool belongs(ValueId whole, ValueId part, bool asks) {
    const std::size_t members = asks ? 2 : 1;
    return cluster_of(whole).members.size() == members &&
           value_at(program_, whole).again == value_at(program_, part).again &&
           reads_the_same(value_at(program_, whole), value_at(program_, part)) &&
           order_.can_merge(owner(whole), owner(part)) &&
           (!asks || target_.computes_gradients_at_once(joint(whole, part)));
  }

  Primitive joint(ValueId whole, ValueId part) const {
    Attached attached = attached_to(program_, cluster_of(whole));
    attached.companions.push_back(part);
    return emit_primitive(program_, whole, attached, places_);
  }

  Program& program_;
  const Target& target_;
  ClusterOrder order_;
  std::vector<std::int32_t> places_;
};

}  // namespace

void pair(Program& program, const Target& target) {
  const bool has_attention = std::ranges::any_of(
      program.values, [](const Value& value) { return ops::row(value.op).family == ops::Family::attention; });
  if (has_attention) Pairs(program, target).run();
}

}  // namespace russet::compile::passes
