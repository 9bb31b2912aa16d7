// Pairs: two results of an attention that read the same are computed by one kernel.
//   y = attention(q, k, v); l = attention_logsumexp(q, k)      ->      y, l = one step
//   the gradients of an attention for key and value            ->      one step
#include <algorithm>

#include "compile/cluster_order.h"
#include "compile/clusters.h"
#include "compile/passes/passes.h"
#include "ops/attention.h"

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

}  // namespace

void pair(Program& program, const Target&) {
  std::vector<ValueId> wholes;
  std::vector<ValueId> parts;
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const Op op = program.values[id].op;
    const std::int32_t owner = program.owner[id];
    if (owner < 0 || program.clusters[static_cast<std::size_t>(owner)].dead) continue;
    if (op == Op::attention || op == Op::attention_key_gradient) wholes.push_back(static_cast<ValueId>(id));
    if (op == Op::attention_logsumexp || op == Op::attention_value_gradient) parts.push_back(static_cast<ValueId>(id));
  }
  if (wholes.empty() || parts.empty()) return;
  ClusterOrder order(program);
  for (const ValueId part : parts) {
    const std::int32_t second = program.owner[static_cast<std::size_t>(part)];
    for (const ValueId whole : wholes) {
      const std::int32_t first = program.owner[static_cast<std::size_t>(whole)];
      const bool belongs =
          (value_at(program, part).op == Op::attention_logsumexp) == (value_at(program, whole).op == Op::attention);
      if (!belongs || program.clusters[static_cast<std::size_t>(first)].members.size() > 1) continue;
      if (value_at(program, whole).again != value_at(program, part).again) continue;
      if (!reads_the_same(value_at(program, whole), value_at(program, part))) continue;
      if (!order.can_merge(first, second)) continue;
      merge(program, first, second);
      order.merge(first, second);
      break;
    }
  }
}

}  // namespace russet::compile::passes
