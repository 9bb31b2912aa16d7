// Prologues: a contraction, or a pool, computes the elements of an input where it reads them, where the device can and
// the input need not lie in memory for that.
//   group: z = relu(y * scale + shift); store z
//   c = convolution(z, w)                           =>    c = convolution(z, w) with prologue (z = relu(...) of y)
// What others read too is stored by the first contraction that reads each of its elements once: it saves the read.
#include <algorithm>

#include "compile/cluster_order.h"
#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/passes/recomputation.h"
#include "compile/steady.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

/// Whether a group computes the value, element by element, or copies a view of another, in every run.
bool is_candidate(const Program& program, const std::vector<bool>& steady, ValueId id) {
  if (steady[static_cast<std::size_t>(id)]) return false;
  const std::int32_t owner = program.owner[static_cast<std::size_t>(id)];
  if (owner < 0 || !(is_pointwise(value_at(program, id)) || is_view(value_at(program, id)))) return false;
  const Cluster& cluster = program.clusters[static_cast<std::size_t>(owner)];
  return !cluster.dead && cluster.kind == Cluster::Kind::group;
}

/// Every input that may be computed where it is read gets a prologue that computes nothing yet.
void open_prologues(Program& program, const std::vector<bool>& steady) {
  const std::size_t count = program.clusters.size();
  for (std::size_t id = 0; id < count; ++id) {
    if (program.clusters[id].dead || program.clusters[id].kind != Cluster::Kind::primitive) continue;
    const Value& value = value_at(program, program.clusters[id].members.front());
    const ops::Family family = ops::row(value.op).family;
    if (family != ops::Family::contraction && family != ops::Family::window) continue;
    for (std::size_t i = 0; i < 2 && value.inputs[i] >= 0; ++i) {
      // It may be read through a view, but not one that only a run tells.
      const ValueId input = base_of(program, value.inputs[i]);
      if (!is_candidate(program, steady, input)) continue;
      if (input != value.inputs[i] && value_at(program, value.inputs[i]).argument >= 0) continue;
      Cluster prologue;
      prologue.space = value_at(program, input).shape;
      prologue.dead = true;
      program.clusters[id].prologues[i] = static_cast<std::int32_t>(program.clusters.size());
      program.clusters.push_back(std::move(prologue));
    }
  }
}

void drop_empty_prologues(Program& program) {
  for (Cluster& cluster : program.clusters) {
    for (std::int32_t& prologue : cluster.prologues) {
      if (prologue >= 0 && program.clusters[static_cast<std::size_t>(prologue)].members.empty()) prologue = -1;
    }
  }
}

/// Lets contractions compute, and store, what groups left in memory for them and for others.
class Storing {
 public:
  Storing(Program& program, const Target& target, const std::vector<bool>& steady)
      : program_(program), target_(target), order_(program), places_(numbers_as_slots(program)), steady_(steady) {}

  void run() {
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& head = program_.clusters[id];
      if (head.dead || head.kind != Cluster::Kind::primitive) continue;
      if (ops::row(value_at(program_, head.members.front()).op).family != ops::Family::contraction) continue;
      for (std::size_t input = 0; input < 2; ++input) consider(static_cast<std::int32_t>(id), input);
    }
  }

 private:
  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }

  void consider(std::int32_t head, std::size_t input) {
    Cluster& whole = cluster(head);
    if (whole.prologues[input] >= 0) return;
    const ValueId value = value_at(program_, whole.members.front()).inputs[input];
    const std::int32_t group = program_.owner[static_cast<std::size_t>(value)];
    if (group < 0 || !is_storable(cluster(group), value) || reads_more(whole, input, group)) return;
    if (computes_again(program_, whole) && !computes_again(program_, cluster(group))) return;
    Attached attached = attached_to(program_, whole);
    attached.prologues[input] = &cluster(group);
    if (!target_.accepts_epilogue(emit_primitive(program_, whole.members.front(), attached, places_))) return;
    if (order_.can_merge(group, head)) absorb(head, input, group);
  }

  bool is_storable(const Cluster& group, ValueId value) const {
    if (group.dead || group.kind != Cluster::Kind::group || group.reduced != 0) return false;
    if (steady_[static_cast<std::size_t>(value)]) return false;  // it is stored once for many runs
    const bool stored = std::find(group.stores.begin(), group.stores.end(), value) != group.stores.end();
    return stored && std::all_of(group.stores.begin(), group.stores.end(),
                                 [&](ValueId id) { return value_at(program_, id).shape == group.space; });
  }

  /// Whether the contraction reads something of the group besides this input.
  bool reads_more(const Cluster& whole, std::size_t input, std::int32_t group) const {
    const auto is_of_group = [&](ValueId id) {
      return id >= 0 && program_.owner[static_cast<std::size_t>(base_of(program_, id))] == group;
    };
    const auto& inputs = value_at(program_, whole.members.front()).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i != input && is_of_group(inputs[i])) return true;
    }
    const Attached attached = attached_to(program_, whole);
    for (const Cluster* part : {attached.epilogue, attached.prologues[0], attached.prologues[1]}) {
      if (part == nullptr) continue;
      const std::vector<ValueId> reads = reads_of(program_, *part);
      if (std::any_of(reads.begin(), reads.end(), is_of_group)) return true;
    }
    return false;
  }

  void absorb(std::int32_t head, std::size_t input, std::int32_t group) {
    Cluster& whole = cluster(head);
    Cluster& part = cluster(group);
    whole.prologues[input] = group;
    whole.stores.insert(whole.stores.end(), part.stores.begin(), part.stores.end());
    for (const ValueId member : part.members) {
      std::int32_t& owner = program_.owner[static_cast<std::size_t>(member)];
      if (owner == group) owner = head;
    }
    part.dead = true;
    order_.merge(head, group);
  }

  Program& program_;
  const Target& target_;
  ClusterOrder order_;
  std::vector<std::int32_t> places_;
  const std::vector<bool>& steady_;  // by value
};

/// Lets convolutions that the device has no other prologues for compute the image that they alone read.
class Images {
 public:
  Images(Program& program, const Target& target)
      : program_(program),
        target_(target),
        readers_(program, Readers::Views::read),
        places_(numbers_as_slots(program)),
        steady_(steady_values(program)) {}

  void run() {
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      Cluster& head = program_.clusters[id];
      if (head.dead || head.kind != Cluster::Kind::primitive) continue;
      const ValueId contraction = head.members.front();
      if (value_at(program_, contraction).op != ops::Op::convolution) continue;
      const ValueId image = value_at(program_, contraction).inputs[0];
      if (!is_candidate(program_, steady_, image) || readers_.only_reader(image) != contraction) continue;
      consider(static_cast<std::int32_t>(id), program_.owner[static_cast<std::size_t>(image)]);
    }
  }

 private:
  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }

  void consider(std::int32_t head, std::int32_t group) {
    Cluster& whole = cluster(head);
    const ValueId contraction = whole.members.front();
    Cluster prologue = cluster(group);
    if (prologue.reduced != 0 || prologue.stores.size() != 1 || whole.prologues[0] >= 0) return;
    Attached attached = attached_to(program_, whole);
    if (!target_.computes_image(emit_primitive(program_, contraction, attached, places_))) return;
    prologue.stores.clear();
    attached.prologues[0] = &prologue;
    if (!target_.accepts_epilogue(emit_primitive(program_, contraction, attached, places_))) return;
    prologue.dead = true;
    for (const ValueId member : prologue.members) program_.owner[static_cast<std::size_t>(member)] = head;
    whole.prologues[0] = group;
    cluster(group) = std::move(prologue);
  }

  Program& program_;
  const Target& target_;
  Readers readers_;
  std::vector<std::int32_t> places_;
  std::vector<bool> steady_;  // by value
};

}  // namespace

void prologues(Program& program, const Target& target) {
  if (!target.takes_prologues()) return Images(program, target).run();
  const std::vector<bool> steady = steady_values(program);
  open_prologues(program, steady);
  Recomputation(program, target, Recomputation::Scope::prologues).run();
  drop_empty_prologues(program);
  Storing(program, target, steady).run();
}

}  // namespace russet::compile::passes
