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
  /// What computing costs beside moving memory.
  enum class Costs : std::uint8_t {
    core,        // a core computes while it waits for nothing else
    multiplier,  // beside a contraction's products on a GPU
  };

  Recomputation(Program& program, const Target& target, Costs costs);

  /// Takes those values out of memory that it pays for. `only_prologues`: of those alone that a primitive reads through
  /// a prologue.
  void run(bool only_prologues);

 private:
  struct Recipe {
    std::vector<ValueId> members;  // what has to be computed, the value itself among it
    double bytes = 0;              // what has to be loaded besides what the reader loads
  };
  using Grown = std::map<std::int32_t, Cluster>;  // clusters as they would be
  struct Reading {
    std::int32_t reader = -1;
    Recipe recipe;
  };

  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }
  const Cluster& cluster(std::int32_t id) const { return program_.clusters[static_cast<std::size_t>(id)]; }
  void find_heads();
  void find_readers();
  void read_by(std::int32_t id, const Cluster& own);
  double cost_of(const Value& value) const;
  std::optional<Recipe> recipe_for(ValueId id, const Cluster& reader, double budget) const;
  bool loads(const Cluster& reader, ValueId base) const;
  double load_bytes(const Cluster& owner) const;
  void consider(ValueId id, bool only_prologues);
  bool is_prologue(std::int32_t id) const;
  bool accepts(std::int32_t reader, const Grown& grown) const;
  void apply(const Reading& reading);

  Program& program_;
  const Target& target_;
  Costs costs_;
  std::vector<std::int32_t> places_;  // of values; slots do not exist yet, their own numbers stand for them
  std::vector<std::int32_t> heads_;   // of each cluster: the primitive that it is part of, or -1
  std::vector<bool> in_memory_;
  std::vector<bool> pinned_;                     // must stay in memory: outputs, what primitives or views read
  std::vector<std::set<std::int32_t>> readers_;  // other clusters that read each value
};

}  // namespace russet::compile::passes
