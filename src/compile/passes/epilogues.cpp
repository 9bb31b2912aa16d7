// Epilogues: work on the result of a contraction or a pool is done before it is stored, where the device can.
//   c = matmul(a, b); y = relu(c + bias)      ->      y = matmul(a, b) with epilogue (+ bias, relu)
//   c = convolution(x, w); s = sum(c)         ->      c, s = convolution(x, w) with epilogue (sum)
#include <algorithm>
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
  Epilogues(Program& program, const Target& target) : program_(program), target_(target), order_(program) {
    // Slots do not exist yet; a value's own number stands for its memory.
    for (std::size_t id = 0; id < program.values.size(); ++id) places_.push_back(static_cast<std::int32_t>(id));
    outputs_.assign(program.values.size(), false);
    for (const Output& output : program.outputs) outputs_[static_cast<std::size_t>(output.value)] = true;
  }

  void run() {
    find_readings();
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
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
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& cluster = program_.clusters[id];
      if (cluster.dead) continue;
      for (const ValueId member : cluster.members) {
        for (const ValueId input : value_at(program_, member).inputs) {
          if (input < 0) continue;
          const ValueId base = base_of(program_, input);
          if (!takes_epilogue(base)) continue;
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
      if (fits(producer, result, group, sole)) return absorb(producer, result, group);
    }
  }

  /// Whether the group can be the epilogue. It stores values of the result's shape, whose only reader it is, such as a
  /// parameter and its momentum, or what relu gives and where that is zero. With sums it may store none: then the
  /// result is stored.
  bool fits(std::int32_t producer, ValueId result, std::int32_t group, bool sole) {
    const Cluster& tail = program_.clusters[static_cast<std::size_t>(group)];
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
    if (tail.reduced == 0 && (!sole || full != tail.stores.size())) return false;
    if (tail.reduced != 0 && ((full > 0 && !sole) || reads_through_view(tail, result))) return false;
    const Cluster whole = with_output(tail, result);
    return target_.accepts_epilogue(emit_primitive(program_, result, {&whole, {}}, places_)) &&
           order_.can_merge(producer, group);
  }

  bool reads_through_view(const Cluster& tail, ValueId result) const {
    for (const ValueId member : tail.members) {
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input >= 0 && input != result && base_of(program_, input) == result) return true;
      }
    }
    return false;
  }

  /// The group with the result among what it stores, if nothing of its shape is.
  Cluster with_output(Cluster tail, ValueId result) const {
    const Shape& shape = value_at(program_, result).shape;
    const bool stores = std::any_of(tail.stores.begin(), tail.stores.end(),
                                    [&](ValueId id) { return value_at(program_, id).shape == shape; });
    if (!stores) tail.stores.insert(tail.stores.begin(), result);
    return tail;
  }

  void absorb(std::int32_t producer, ValueId result, std::int32_t group) {
    Cluster& tail = program_.clusters[static_cast<std::size_t>(group)];
    tail = with_output(std::move(tail), result);
    Cluster& head = program_.clusters[static_cast<std::size_t>(producer)];
    head.epilogue = group;
    head.stores = tail.stores;
    for (const ValueId member : tail.members) {
      if (program_.owner[static_cast<std::size_t>(member)] == group) {
        program_.owner[static_cast<std::size_t>(member)] = producer;
      }
    }
    tail.dead = true;
    order_.merge(producer, group);
  }

  Program& program_;
  const Target& target_;
  ClusterOrder order_;
  std::unordered_map<ValueId, std::vector<Reading>> readings_;  // of what takes epilogues
  std::vector<std::int32_t> places_;
  std::vector<bool> outputs_;
};

}  // namespace

void epilogues(Program& program, const Target& target) { Epilogues(program, target).run(); }

}  // namespace russet::compile::passes
