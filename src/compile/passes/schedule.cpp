// Schedule: an order of clusters in which inputs come first, otherwise as close to record order as they allow: what was
// written together runs together, and temporaries die soon. Two things come at another time than they were recorded:
// what gives large outputs alone runs as soon as it can, for what it reads then dies (a gradient, once its parameter is
// updated), and what updates a leaf runs after all that read the old value, for it then takes the leaf's memory.
#include <algorithm>
#include <queue>
#include <span>

#include "compile/cluster_order.h"
#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

class Scheduler {
 public:
  explicit Scheduler(Program& program)
      : program_(program),
        order_(program),
        count_(program.clusters.size()),
        readers_(count_),
        waits_(count_, 0),
        rank_(count_, 0),
        leaf_readers_(program.leaves.size()),
        is_output_(program.values.size(), false) {
    for (const Output& output : program.outputs) is_output_[static_cast<std::size_t>(output.value)] = true;
  }

  void run() {
    for (std::size_t id = 0; id < count_; ++id) {
      if (!cluster(id).dead) find_inputs(static_cast<std::int32_t>(id));
    }
    for (std::size_t id = 0; id < count_; ++id) {
      if (cluster(id).dead) continue;
      if (gives_large_outputs(id)) rank_[id] = -1;
      update_last(static_cast<std::int32_t>(id));
    }
    take();
  }

 private:
  const Cluster& cluster(std::size_t id) const { return program_.clusters[id]; }

  /// What the cluster computes, in its attached groups, too.
  std::vector<ValueId> members_of(const Cluster& cluster) const {
    std::vector<ValueId> members = cluster.members;
    const Attached attached = attached_to(program_, cluster);
    for (const Cluster* part : {attached.epilogue, attached.prologues[0], attached.prologues[1]}) {
      if (part != nullptr) members.insert(members.end(), part->members.begin(), part->members.end());
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  void find_inputs(std::int32_t id) {
    const Cluster& own = cluster(static_cast<std::size_t>(id));
    const std::vector<ValueId> members = members_of(own);
    rank_[static_cast<std::size_t>(id)] = own.members.back();
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> leaves;
    for (const ValueId member : members) {
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input < 0) continue;
        const ValueId base = base_of(program_, input);
        if (value_at(program_, base).leaf >= 0) leaves.push_back(value_at(program_, base).leaf);
        if (std::binary_search(members.begin(), members.end(), base)) continue;
        const std::int32_t owner = program_.owner[static_cast<std::size_t>(base)];
        if (owner < 0 || owner == id || owner == own.epilogue || cluster(static_cast<std::size_t>(owner)).dead)
          continue;
        inputs.push_back(owner);
      }
    }
    for (const std::int32_t input : unique(inputs)) add_edge(input, id);
    for (const std::int32_t leaf : unique(leaves)) leaf_readers_[static_cast<std::size_t>(leaf)].push_back(id);
  }

  static std::span<const std::int32_t> unique(std::vector<std::int32_t>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  /// If the cluster can update a leaf in place, lets the leaf's other readers run before it, except those that depend
  /// on its results.
  void update_last(std::int32_t id) {
    for (const ValueId member : members_of(cluster(static_cast<std::size_t>(id)))) {
      if (!is_pointwise(value_at(program_, member))) continue;
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input < 0 || !overwrites(cluster(static_cast<std::size_t>(id)), value_at(program_, input))) continue;
        for (const std::int32_t reader : leaf_readers_[static_cast<std::size_t>(value_at(program_, input).leaf)]) {
          if (reader == id || order_.reaches(id, reader)) continue;
          add_edge(reader, id);
          order_.order(reader, id);
        }
      }
    }
  }

  /// Whether the cluster gives an output that can take the memory of the leaf.
  bool overwrites(const Cluster& cluster, const Value& leaf) const {
    if (leaf.leaf < 0 || !program_.leaves[static_cast<std::size_t>(leaf.leaf)].donatable) return false;
    return std::any_of(cluster.stores.begin(), cluster.stores.end(), [&](ValueId id) {
      const Value& stored = value_at(program_, id);
      return is_output_[static_cast<std::size_t>(id)] && stored.shape == leaf.shape && stored.dtype == leaf.dtype;
    });
  }

  void add_edge(std::int32_t from, std::int32_t to) {
    readers_[static_cast<std::size_t>(from)].push_back(to);
    ++waits_[static_cast<std::size_t>(to)];
  }

  /// Large outputs, and nothing else.
  bool gives_large_outputs(std::size_t id) const {
    std::size_t bytes = 0;
    for (const ValueId stored : cluster(id).stores) {
      if (!is_output_[static_cast<std::size_t>(stored)]) return false;
      bytes += byte_size(value_at(program_, stored));
    }
    return readers_[id].empty() && bytes > small_bytes;
  }

  void take() {
    using Ready = std::pair<ValueId, std::int32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t id = 0; id < count_; ++id) {
      if (!cluster(id).dead && waits_[id] == 0) ready.emplace(rank_[id], static_cast<std::int32_t>(id));
    }
    program_.order.clear();
    while (!ready.empty()) {
      const std::int32_t next = ready.top().second;
      ready.pop();
      program_.order.push_back(next);
      for (const std::int32_t reader : readers_[static_cast<std::size_t>(next)]) {
        const auto at = static_cast<std::size_t>(reader);
        if (--waits_[at] == 0) ready.emplace(rank_[at], reader);
      }
    }
  }

  Program& program_;
  ClusterOrder order_;
  std::size_t count_;
  std::vector<std::vector<std::int32_t>> readers_;       // by cluster: those that wait for it
  std::vector<std::int32_t> waits_;                      // by cluster: for how many it waits
  std::vector<ValueId> rank_;                            // by cluster: of those that can run, the lowest runs
  std::vector<std::vector<std::int32_t>> leaf_readers_;  // by leaf
  std::vector<bool> is_output_;                          // by value
};

}  // namespace

void schedule(Program& program, const Target&) { Scheduler(program).run(); }

}  // namespace russet::compile::passes
