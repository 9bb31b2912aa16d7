#include "compile/passes/recomputation.h"

#include <algorithm>

#include "compile/emit.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

/// What an operator costs per element, in bytes that memory would move in the same time (measured: about 10 bytes a
/// nanosecond and core; a vector exp about a nanosecond).
double core_cost(const Value& value) {
  switch (ops::row(value.op).cost) {
    case ops::Cost::draw:
    case ops::Cost::draw_more: return 32;
    case ops::Cost::series:
    case ops::Cost::chain: return 6;
    case ops::Cost::root: return 2;
    default: return 0.75;
  }
}

constexpr std::size_t most_recomputed = 16;
constexpr std::size_t most_members = 512;

void append(std::vector<ValueId>& members, const std::vector<ValueId>& more) {
  members.insert(members.end(), more.begin(), more.end());
}

void add_members(Cluster& reader, const std::vector<ValueId>& more) {
  auto& members = reader.members;
  append(members, more);
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
}

}  // namespace

Recomputation::Recomputation(Program& program, const Target& target, Scope scope)
    : program_(program),
      target_(target),
      scope_(scope),
      reads_(program, Readers::Views::read),
      places_(numbers_as_slots(program)) {
  in_memory_.assign(program.values.size(), false);
  pinned_.assign(program.values.size(), false);
  for (const Leaf& leaf : program.leaves) in_memory_[static_cast<std::size_t>(leaf.value)] = true;
  for (const Cluster& cluster : program.clusters) {
    for (const ValueId stored : cluster.stores) in_memory_[static_cast<std::size_t>(stored)] = true;
  }
  for (const Output& output : program.outputs) pinned_[static_cast<std::size_t>(output.value)] = true;
  find_heads();
  find_readers();
}

void Recomputation::run() {
  // Taking one value out of memory may make it pay to take out another that was computed from it.
  while (sweep()) {
  }
  for (Cluster& cluster : program_.clusters) {
    if (cluster.stores.empty()) cluster.dead = true;
    if (!cluster.dead && cluster.kind == Cluster::Kind::group) drop_unused(program_, cluster);
  }
}

/// Considers every value once. Returns whether any was taken out of memory.
bool Recomputation::sweep() {
  bool any = false;
  for (auto id = static_cast<ValueId>(program_.values.size()); id-- > 0;) {
    if (is_considered(id)) any |= consider({id});
  }
  if (scope_ == Scope::groups) return any;
  // Recomputing a single value of a group may not pay where recomputing all of them does: then the whole group is
  // removed, and with it its loads.
  for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
    const std::vector<ValueId> stores = program_.clusters[id].stores;
    const bool all = std::all_of(stores.begin(), stores.end(), [&](ValueId stored) { return is_considered(stored); });
    if (stores.size() > 1 && all) any |= consider(stores);
  }
  return any;
}

void Recomputation::find_heads() {
  heads_.assign(program_.clusters.size(), -1);
  for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
    const Cluster& own = program_.clusters[id];
    for (const std::int32_t part : {own.epilogue, own.prologues[0], own.prologues[1]}) {
      if (part >= 0) heads_[static_cast<std::size_t>(part)] = static_cast<std::int32_t>(id);
    }
  }
}

void Recomputation::find_readers() {
  readers_.assign(program_.values.size(), {});
  for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
    const Cluster& own = program_.clusters[id];
    if (!own.dead || heads_[id] >= 0) read_by(static_cast<std::int32_t>(id), own);
  }
}

void Recomputation::read_by(std::int32_t id, const Cluster& own) {
  const bool is_group = own.kind == Cluster::Kind::group;
  for (const ValueId member : own.members) {
    const auto& inputs = value_at(program_, member).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0) continue;
      const std::int32_t prologue = !is_group && i < own.prologues.size() ? own.prologues[i] : -1;
      const ValueId base = base_of(program_, inputs[i]);
      const auto at = static_cast<std::size_t>(base);
      if (prologue >= 0) {
        readers_[at].insert(prologue);
        continue;
      }
      if (!is_group || base != inputs[i]) pinned_[at] = true;
      const std::int32_t owner = program_.owner[at];
      if (owner != id && (owner < 0 || owner != heads_[static_cast<std::size_t>(id)])) readers_[at].insert(id);
    }
  }
}

double Recomputation::cost_of(const Value& value) const {
  // Where contractions have prologues, groups are looked at once more with these: what groups compute before that
  // leaves less for prologues.
  if (scope_ == Scope::groups && target_.takes_prologues()) return core_cost(value);
  return core_cost(value) * target_.cost_of_operations();
}

/// How `reader` could compute the value; nothing if it cannot, or not within the budget.
std::optional<Recomputation::RecomputedMembers> Recomputation::recomputed_by(ValueId id, const Cluster& reader,
                                                                             double budget, InMemory in_memory) const {
  RecomputedMembers recomputed;
  std::vector<ValueId> stack{id};
  std::set<ValueId> seen{id};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    const Value& value = value_at(program_, next);
    const Fit fits = fit(value.shape, reader);
    if (fits == Fit::none || recomputed.members.size() >= most_recomputed) return std::nullopt;
    recomputed.members.push_back(next);
    recomputed.bytes += cost_of(value) * static_cast<double>(numel(value.shape));
    for (const ValueId input : value.inputs) {
      if (input < 0 || !seen.insert(input).second || is_free(value_at(program_, input))) continue;
      if (std::binary_search(reader.members.begin(), reader.members.end(), input)) continue;
      const ValueId base = base_of(program_, input);
      if (in_memory_[static_cast<std::size_t>(base)]) {
        if (loads(reader, base)) continue;
        const auto load = static_cast<double>(byte_size(value_at(program_, input)));
        const bool may_compute =
            in_memory == InMemory::loaded_or_computed && base == input && is_pointwise(value_at(program_, input));
        const auto computed = may_compute ? recomputed_by(input, reader, load, InMemory::loaded) : std::nullopt;
        recomputed.bytes += computed ? computed->bytes : load;
        if (computed) append(recomputed.members, computed->members);
      } else if (base == input && is_pointwise(value_at(program_, input))) {
        stack.push_back(input);
      } else {
        return std::nullopt;
      }
    }
    if (recomputed.bytes > budget) return std::nullopt;
  }
  return recomputed;
}

bool Recomputation::loads(const Cluster& reader, ValueId base) const {
  for (const ValueId member : reader.members) {
    for (const ValueId input : value_at(program_, member).inputs) {
      if (input >= 0 && base_of(program_, input) == base) return true;
    }
  }
  return false;
}

double Recomputation::load_bytes(const Cluster& owner) const {
  double bytes = 0;
  for (const ValueId id : reads_of(program_, owner)) bytes += static_cast<double>(byte_size(value_at(program_, id)));
  return bytes;
}

bool Recomputation::is_considered(ValueId id) const {
  const auto at = static_cast<std::size_t>(id);
  if (!in_memory_[at] || pinned_[at] || program_.owner[at] < 0) return false;
  const Value& value = value_at(program_, id);
  if (scope_ == Scope::groups) return is_pointwise(value);
  const Cluster& owner = cluster(program_.owner[at]);
  return (is_pointwise(value) || is_view(value)) && !owner.dead && owner.kind == Cluster::Kind::group;
}

/// Takes the values, all of one cluster, out of memory if that pays. Returns whether it did.
bool Recomputation::consider(const std::vector<ValueId>& ids) {
  for (const ValueId id : ids) in_memory_[static_cast<std::size_t>(id)] = false;
  const bool gone = replace(ids);
  for (const ValueId id : ids) in_memory_[static_cast<std::size_t>(id)] = !gone;
  return gone;
}

bool Recomputation::replace(const std::vector<ValueId>& ids) {
  const std::int32_t owner = program_.owner[static_cast<std::size_t>(ids.front())];
  std::vector<ValueId>& stores = cluster(owner).stores;
  double budget = 0;
  for (const ValueId id : ids) {
    const auto reads = static_cast<double>(readers_[static_cast<std::size_t>(id)].size());
    budget += static_cast<double>(byte_size(value_at(program_, id))) * (1 + reads);
  }
  // A group that stores nothing else is removed, which saves its loads as well.
  if (scope_ == Scope::prologues && stores.size() == ids.size()) budget += load_bytes(cluster(owner));
  // A contraction computes an element of a prologue once for each tap and tile that reads it.
  const InMemory in_memory = scope_ == Scope::prologues ? InMemory::loaded : InMemory::loaded_or_computed;
  std::vector<Replacement> replacements;
  Grown grown;
  for (const ValueId id : ids) {
    if (readers_[static_cast<std::size_t>(id)].empty()) return false;
    for (const std::int32_t reader : readers_[static_cast<std::size_t>(id)]) {
      Cluster& whole = grown.emplace(reader, cluster(reader)).first->second;
      auto recomputed = recomputed_by(id, whole, budget, in_memory);
      if (!recomputed) return false;
      budget -= recomputed->bytes;
      add_members(whole, recomputed->members);
      replacements.push_back({reader, std::move(*recomputed)});
    }
  }
  if (budget < 0) return false;
  for (const auto& [reader, whole] : grown) {
    if (!accepts(reader, grown)) return false;
  }
  for (const Replacement& replacement : replacements) apply(replacement);
  std::erase_if(stores, [&](ValueId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); });
  if (scope_ == Scope::prologues && stores.empty()) retire(owner);
  return true;
}

/// Removes a cluster that stores nothing, and its reads.
void Recomputation::retire(std::int32_t id) {
  cluster(id).dead = true;
  for (std::set<std::int32_t>& readers : readers_) readers.erase(id);
}

/// Whether the device can run the reader, or the primitive that the reader is attached to, with its new members.
bool Recomputation::accepts(std::int32_t reader, const Grown& grown) const {
  const Cluster& own = grown.at(reader);
  if (own.members.size() > most_members || !is_runnable(program_, reads_, own, target_)) return false;
  const std::int32_t head = heads_[static_cast<std::size_t>(reader)];
  if (head < 0) return true;
  const auto now = [&](std::int32_t part) -> const Cluster* {
    if (part < 0) return nullptr;
    const auto found = grown.find(part);
    const Cluster& at = found == grown.end() ? cluster(part) : found->second;
    return at.members.empty() ? nullptr : &at;
  };
  const Cluster& whole = cluster(head);
  const Attached attached{now(whole.epilogue), {now(whole.prologues[0]), now(whole.prologues[1])}, {}};
  return target_.accepts_epilogue(emit_primitive(program_, whole.members.front(), attached, places_));
}

void Recomputation::apply(const Replacement& replacement) {
  Cluster& own = cluster(replacement.reader);
  add_members(own, replacement.recomputed.members);
  for (const ValueId member : replacement.recomputed.members) {
    for (const ValueId input : value_at(program_, member).inputs) {
      if (input < 0) continue;
      const auto base = static_cast<std::size_t>(base_of(program_, input));
      if (program_.owner[base] != replacement.reader) readers_[base].insert(replacement.reader);
    }
  }
}

}  // namespace russet::compile::passes
