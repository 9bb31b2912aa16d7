// Epilogues: work on the result of a contraction or a pool is done before it is stored, where the device can.
//   c = matmul(a, b); y = relu(c + bias)      ->      y = matmul(a, b) with epilogue (+ bias, relu)
//   c = convolution(x, w); s = sum(c)         ->      c, s = convolution(x, w) with epilogue (sum)
//   h = matmul(a, b); y = gelu(h)             ->      h, y = matmul(a, b) with epilogue (gelu)      for h's other
//   readers
// What else a group stores is computed by its readers, if it is one operation on the result:
//   c = convolution(x, w); y = relu(c), m = y <= 0; g = where(m, 0, h)      ->      ...; g = where(y <= 0, 0, h)
// Sums that the contraction cannot add up are left to a group of their own:
//   c = matmul(a, b); g = c * h, s = sum(g)      ->      g = matmul(a, b) with epilogue (* h); s = sum(g)
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "compile/cluster_order.h"
#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

class Epilogues {
 public:
  Epilogues(Program& program, const Target& target)
      : program_(program),
        target_(target),
        order_(std::make_unique<ClusterOrder>(program)),
        places_(numbers_as_slots(program)) {
    outputs_.assign(program.values.size(), false);
    for (const Output& output : program.outputs) outputs_[static_cast<std::size_t>(output.value)] = true;
  }

  void run() {
    find_readings();
    const std::size_t clusters = program_.clusters.size();
    for (std::size_t id = 0; id < clusters; ++id) {
      const Cluster& cluster = program_.clusters[id];
      if (cluster.dead || cluster.kind != Cluster::Kind::primitive) continue;
      const ValueId result = cluster.members.front();
      if (takes_epilogue(result)) consider(static_cast<std::int32_t>(id), result);
    }
  }

 private:
  /// A cluster that reads a value, itself or through views.
  struct Reading {
    std::int32_t cluster;
    bool itself;
  };
  /// The groups that read the result itself, and whether anything else does: a view, a primitive, the outside.
  struct ResultReaders {
    std::vector<std::int32_t> groups;
    bool others = false;
  };

  void find_readings() {
    readings_.clear();
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& cluster = program_.clusters[id];
      if (cluster.dead) continue;
      for (const ValueId member : cluster.members) {
        for (const ValueId input : value_at(program_, member).inputs) {
          if (input < 0) continue;
          const ValueId base = base_of(program_, input);
          readings_[base].push_back({static_cast<std::int32_t>(id), input == base});
        }
      }
    }
  }

  bool takes_epilogue(ValueId result) const {
    const ops::Family family = ops::row(value_at(program_, result).op).family;
    return family == ops::Family::contraction || family == ops::Family::window;
  }

  ResultReaders readers_of(ValueId result) {
    ResultReaders readers;
    readers.others = outputs_[static_cast<std::size_t>(result)];
    for (const auto& [id, itself] : readings_[result]) {
      const Cluster& cluster = program_.clusters[static_cast<std::size_t>(id)];
      const bool by_group = itself && !cluster.dead && cluster.kind == Cluster::Kind::group;
      readers.others |= !by_group;
      if (by_group && (readers.groups.empty() || readers.groups.back() != id)) readers.groups.push_back(id);
    }
    return readers;
  }

  void consider(std::int32_t producer, ValueId result) {
    const ResultReaders readers = readers_of(result);
    const bool sole = readers.groups.size() == 1 && !readers.others;
    for (const std::int32_t group : readers.groups) {
      if (fits(producer, result, group, cluster(group), sole)) return absorb(producer, result, group, sole);
    }
    if (!sole) return;
    const std::int32_t group = readers.groups.front();
    const std::vector<ValueId> derived = derived_stores(group);
    if (!derived.empty() && fits(producer, result, group, without(cluster(group), derived), sole)) {
      for (const ValueId id : derived) leave_to_readers(id, group);
      absorb(producer, result, group, sole);
    } else if (split_sums(producer, result, group)) {
      consider(producer, result);
    }
  }

  /// Leaves a group its sums and makes a group of what it stores besides, if that can be the epilogue and is all
  /// that the sums need: nothing then waits for the sums, and memory moves less.
  bool split_sums(std::int32_t producer, ValueId result, std::int32_t group) {
    // Where contractions have prologues, they may compute what would be stored here.
    if (target_.takes_prologues()) return false;
    const Cluster& whole = cluster(group);
    if (whole.kind != Cluster::Kind::group || whole.reduced == 0) return false;
    Cluster map = stored_part(whole);
    const Cluster sums = without(whole, map.members);
    if (map.stores.empty() || !sums_read_stores(sums, map) || !moves_less(result, sums, map)) return false;
    if (!fits(producer, result, group, map, true)) return false;
    const auto made = static_cast<std::int32_t>(program_.clusters.size());
    for (const ValueId member : map.members) {
      if (program_.owner[static_cast<std::size_t>(member)] == group) {
        program_.owner[static_cast<std::size_t>(member)] = made;
      }
    }
    cluster(group) = sums;
    program_.clusters.push_back(std::move(map));
    find_readings();
    order_ = std::make_unique<ClusterOrder>(program_);
    return true;
  }

  /// What a group stores over its whole space, and what it computes that from.
  Cluster stored_part(Cluster whole) const {
    whole.reduced = 0;
    std::erase_if(whole.stores, [&](ValueId id) { return value_at(program_, id).shape != whole.space; });
    drop_unused(program_, whole);
    return whole;
  }

  bool sums_read_stores(const Cluster& sums, const Cluster& map) const {
    const std::vector<ValueId> reads = reads_of(program_, sums);
    return std::ranges::none_of(map.members, [&](ValueId id) { return is_reduction(value_at(program_, id)); }) &&
           std::ranges::all_of(reads, [&](ValueId id) {
             return !is_member(map, id) || std::ranges::find(map.stores, id) != map.stores.end();
           });
  }

  /// Of memory: what the contraction would store and the group read again, against what the sums read once more.
  bool moves_less(ValueId result, const Cluster& sums, const Cluster& map) const {
    const std::vector<ValueId> before = reads_of(program_, map);
    std::size_t more = 0;
    for (const ValueId id : reads_of(program_, sums)) {
      if (id == result) return false;
      if (is_member(map, id) || std::ranges::binary_search(before, id)) more += byte_size(value_at(program_, id));
    }
    return more < 2 * byte_size(value_at(program_, result));
  }

  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }

  /// What a group stores besides what it is one operation on, where few groups read it, which can compute it.
  std::vector<ValueId> derived_stores(std::int32_t group) {
    const Cluster& tail = cluster(group);
    std::vector<ValueId> derived;
    for (const ValueId id : tail.stores) {
      const Value& value = value_at(program_, id);
      const auto is_at_hand = [&](ValueId input) {
        const bool is_kept = std::find(derived.begin(), derived.end(), input) == derived.end();
        return input < 0 || is_free(value_at(program_, input)) ||
               (is_kept && std::find(tail.stores.begin(), tail.stores.end(), input) != tail.stores.end());
      };
      if (ops::row(value.op).family != ops::Family::elementwise || outputs_[static_cast<std::size_t>(id)]) continue;
      if (std::all_of(value.inputs.begin(), value.inputs.end(), is_at_hand) && may_be_left_to_readers(id, group)) {
        derived.push_back(id);
      }
    }
    return derived;
  }

  bool may_be_left_to_readers(ValueId id, std::int32_t group) {
    constexpr std::size_t most_readers = 2;
    std::size_t readers = 0;
    for (const auto& [reader, itself] : readings_[id]) {
      if (reader == group) continue;
      const Cluster& own = cluster(reader);
      const bool computes = itself && !own.dead && own.kind == Cluster::Kind::group;
      if (!computes || fit(value_at(program_, id).shape, own) != Fit::full || ++readers > most_readers) return false;
    }
    return true;
  }

  static Cluster without(Cluster tail, const std::vector<ValueId>& ids) {
    const auto is_gone = [&](ValueId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
    std::erase_if(tail.members, is_gone);
    std::erase_if(tail.stores, is_gone);
    return tail;
  }

  void leave_to_readers(ValueId id, std::int32_t group) {
    for (const auto& [reader, itself] : readings_[id]) {
      std::vector<ValueId>& members = cluster(reader).members;
      if (reader == group || std::binary_search(members.begin(), members.end(), id)) continue;
      members.insert(std::lower_bound(members.begin(), members.end(), id), id);
      for (const ValueId input : value_at(program_, id).inputs) {
        if (input >= 0) readings_[base_of(program_, input)].push_back({reader, true});
      }
    }
    cluster(group) = without(std::move(cluster(group)), {id});
  }

  /// Whether the group can be the epilogue. It stores values of the result's shape, such as a parameter and its
  /// momentum, or what relu gives and where that is zero. With sums it may store none: then the result is stored. If
  /// others read the result, that is stored as well, but where contractions have prologues: these may compute what the
  /// group would store.
  bool fits(std::int32_t producer, ValueId result, std::int32_t group, const Cluster& tail, bool sole) {
    const Value& value = value_at(program_, result);
    if (tail.kind != Cluster::Kind::group || tail.space != value.shape) return false;
    if (!value.again && computes_again(program_, tail)) return false;
    if (tail.reduced != 0 && kind_of(program_, tail) != Group::Kind::column) return false;
    std::size_t full = 0;
    for (const ValueId id : tail.stores) {
      const Value& stored = value_at(program_, id);
      if (stored.shape != value.shape) continue;
      ++full;
      if (stored.strides != value.strides) return false;
    }
    if (tail.reduced == 0 && (full != tail.stores.size() || (!sole && target_.takes_prologues()))) return false;
    if (tail.reduced != 0 && full > 0 && !sole) return false;
    if ((tail.reduced != 0 || !sole) && reads_through_view(tail, result)) return false;
    const Cluster whole = with_output(tail, result, sole);
    return target_.accepts_epilogue(emit_primitive(program_, result, {&whole, {}, {}}, places_)) &&
           order_->can_merge(producer, group);
  }

  bool reads_through_view(const Cluster& tail, ValueId result) const {
    for (const ValueId member : tail.members) {
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input >= 0 && input != result && base_of(program_, input) == result) return true;
      }
    }
    return false;
  }

  /// The group with the result among what it stores, if others read it or nothing of its shape is.
  Cluster with_output(Cluster tail, ValueId result, bool sole) const {
    const Shape& shape = value_at(program_, result).shape;
    const bool stores = std::any_of(tail.stores.begin(), tail.stores.end(),
                                    [&](ValueId id) { return value_at(program_, id).shape == shape; });
    if (!stores || !sole) tail.stores.insert(tail.stores.begin(), result);
    return tail;
  }

  void absorb(std::int32_t producer, ValueId result, std::int32_t group, bool sole) {
    Cluster& tail = program_.clusters[static_cast<std::size_t>(group)];
    tail = with_output(std::move(tail), result, sole);
    Cluster& head = program_.clusters[static_cast<std::size_t>(producer)];
    head.epilogue = group;
    head.stores = tail.stores;
    for (const ValueId member : tail.members) {
      if (program_.owner[static_cast<std::size_t>(member)] == group) {
        program_.owner[static_cast<std::size_t>(member)] = producer;
      }
    }
    tail.dead = true;
    order_->merge(producer, group);
  }

  Program& program_;
  const Target& target_;
  std::unique_ptr<ClusterOrder> order_;
  std::unordered_map<ValueId, std::vector<Reading>> readings_;
  std::vector<std::int32_t> places_;
  std::vector<bool> outputs_;
};

}  // namespace

void epilogues(Program& program, const Target& target) { Epilogues(program, target).run(); }

}  // namespace russet::compile::passes
