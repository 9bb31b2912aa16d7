#pragma once
// Recomputation: what the passes recompute and prologues share. A value that is cheaper to compute again than to store
// and load is computed in each cluster that reads it, from what is in memory anyway.
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compile/clusters.h"

namespace russet::compile::passes {

class Recomputation {
 public:
  /// Which values are considered.
  enum class Scope : std::uint8_t {
    groups,     // those that groups alone read
    prologues,  // what contractions read through prologues as well, on a GPU, where operations cost less
  };

  Recomputation(Program& program, const Target& target, Scope scope);

  /// Replaces stores and loads by recomputation wherever that is cheaper.
  void run();

 private:
  struct RecomputedMembers {
    std::vector<ValueId> members;  // what has to be computed, the value itself among it
    double bytes = 0;              // what has to be loaded besides what the reader loads
  };
  /// What a reader does with a value that it has to have, is in memory anyway, and is not loaded by it yet.
  enum class InMemory : std::uint8_t {
    loaded,
    loaded_or_computed,  // from what the reader loads, if that is cheaper
  };
  using Grown = std::map<std::int32_t, Cluster>;  // clusters as they would be
  struct Replacement {
    std::int32_t reader = -1;
    RecomputedMembers recomputed;
  };

  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }
  const Cluster& cluster(std::int32_t id) const { return program_.clusters[static_cast<std::size_t>(id)]; }
  void find_heads();
  void find_readers();
  void read_by(std::int32_t id, const Cluster& own);
  double cost_of(const Value& value) const;
  std::optional<RecomputedMembers> recomputed_by(ValueId id, const Cluster& reader, double budget,
                                                 InMemory in_memory) const;
  bool loads(const Cluster& reader, ValueId base) const;
  double load_bytes(const Cluster& owner) const;
  bool is_considered(ValueId id) const;
  bool sweep();
  bool consider(const std::vector<ValueId>& ids);
  bool replace(const std::vector<ValueId>& ids);
  bool accepts(std::int32_t reader, const Grown& grown) const;
  void apply(const Replacement& replacement);
  void retire(std::int32_t id);

  Program& program_;
  const Target& target_;
  Scope scope_;
  Readers reads_;
  std::vector<std::int32_t> places_;  // of values; slots do not exist yet, their own numbers stand for them
  std::vector<std::int32_t> heads_;   // of each cluster: the primitive that it is part of, or -1
  std::vector<bool> in_memory_;
  std::vector<bool> pinned_;                     // must stay in memory: outputs, what primitives or views read
  std::vector<std::set<std::int32_t>> readers_;  // other clusters that read each value
};

}  // namespace russet::compile::passes
