// Pairs: results of an attention that read the same are computed by one kernel.
//   y = attention(q, k, v); l = attention_logsumexp(q, k)      ->      y, l = one step
//   the gradients of an attention for key and value            ->      one step, with that for the query where the
//                                                                      device has a kernel for all three; that reads
//                                                                      the attention's result instead of the sums of
//                                                                      it times its gradient
#include <algorithm>
#include <array>
#include <optional>

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

ops::AttentionInputs inputs_of(const Value& attention) {
  return ops::attention_inputs(attention.op, std::get<ops::Attention>(attention.attributes));
}
ValueId& delta_of(Value& gradient) { return gradient.inputs[static_cast<std::size_t>(inputs_of(gradient).delta)]; }

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
      if (asks) read_result(*joined, one);
    }
  }

  /// Puts what the sums are made of in their place, and drops them if nothing else reads them.
  void read_result(ValueId whole, ValueId part) {
    const ValueId delta = delta_of(at(whole));
    const std::optional<ValueId> result = result_behind(whole);
    if (!result) return;
    for (const ValueId gradient : {whole, part}) delta_of(at(gradient)) = *result;
    const bool is_used = count_uses(program_)[static_cast<std::size_t>(delta)] > 0;
    Cluster& sums = program_.clusters[static_cast<std::size_t>(owner(delta))];
    if (is_used || sums.stores != std::vector{delta}) return;
    sums = {};
    sums.dead = true;
  }

  /// The attention's result, if a group adds it up times its gradient, which the gradient for the key reads.
  std::optional<ValueId> result_behind(ValueId key_gradient) const {
    const Value& value = value_at(program_, key_gradient);
    const ops::AttentionInputs places = inputs_of(value);
    const ValueId gradient = value.inputs[static_cast<std::size_t>(places.gradient)];
    const ValueId delta = value.inputs[static_cast<std::size_t>(places.delta)];
    const Value& sum = value_at(program_, delta);
    const int last = value_at(program_, gradient).shape.rank() - 1;
    if (sum.op != Op::sum || std::get<ops::Axes>(sum.attributes).mask != 1U << last) return {};
    const Value& product = value_at(program_, sum.inputs[0]);
    if (product.op != Op::mul) return {};
    const std::array factors{cast_by(product.inputs[0]), cast_by(product.inputs[1])};
    for (const int i : {0, 1}) {
      const ValueId result = factors[static_cast<std::size_t>(1 - i)];
      const bool is_other = factors[static_cast<std::size_t>(i)] == gradient && result >= 0;
      if (is_other && is_of_type(result, gradient) && lies_apart(result, delta)) return result;
    }
    return {};
  }

  /// What the value is a cast of, or -1.
  ValueId cast_by(ValueId id) const {
    const Value& value = value_at(program_, id);
    return value.op == Op::cast ? value.inputs[0] : -1;
  }
  bool is_of_type(ValueId a, ValueId b) const { return value_at(program_, a).dtype == value_at(program_, b).dtype; }
  /// Whether the result is in memory without the group that adds up.
  bool lies_apart(ValueId result, ValueId delta) const {
    return !is_member(cluster_of(delta), base_of(program_, result));
  }

  Value& at(ValueId id) { return program_.values[static_cast<std::size_t>(id)]; }

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
    Primitive primitive = emit_primitive(program_, whole, attached, places_);
    if (const std::optional<ValueId> result = result_behind(whole)) {
      Operand& delta = primitive.inputs[static_cast<std::size_t>(inputs_of(value_at(program_, whole)).delta)];
      delta = {access_of(program_, *result, places_), value_at(program_, *result).shape};
    }
    return primitive;
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
