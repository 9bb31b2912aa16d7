#pragma once
// Fusion: what the pass fuse merges. Groups grow by one another as long as the device can run what they become.
#include <optional>
#include <vector>

#include "compile/cluster_order.h"
#include "compile/clusters.h"

namespace russet::compile::passes {

class Fusion {
 public:
  Fusion(Program& program, const Target& target);

  /// Merges groups with those that they read.
  void merge_along_reads();
  /// Merges groups over the same space that read the same values: one sweep serves both.
  void merge_siblings();

 private:
  /// A summary of a group's members, from which follows whether the group is runnable: kept up to date as groups merge,
  /// so that adding a member does not cost a walk over all of them.
  struct Summary {
    std::vector<ValueId> loads;   // loads_of the group: places in memory that it reads, ascending
    std::vector<ValueId> viewed;  // values in memory that members read through views, ascending
    int stored = 0;               // members that others read
    bool reduces = false;
    bool fails = false;     // may, so it stays alone
    bool computed = false;  // by the device itself
    bool again = false;     // some members are computed for backward again
  };
  struct IterationSpace {
    Shape sizes;
    std::uint32_t reduced = 0;
  };
  /// The parts of the Summary of two merged groups that are not simple sums of both.
  struct Union {
    std::vector<ValueId> loads;
    int stored = 0;
  };

  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }
  const Cluster& cluster(std::int32_t id) const { return program_.clusters[static_cast<std::size_t>(id)]; }
  Summary& summary(std::int32_t id) { return summaries_[static_cast<std::size_t>(id)]; }
  const Summary& summary(std::int32_t id) const { return summaries_[static_cast<std::size_t>(id)]; }
  std::int32_t owner(ValueId id) const { return program_.owner[static_cast<std::size_t>(id)]; }
  Summary summary_of(const Cluster& own) const;
  void try_merge(std::int32_t a, std::int32_t b);
  static std::optional<IterationSpace> common_space(const Cluster& a, const Cluster& b);
  bool views_meet(std::int32_t a, std::int32_t b) const;
  Union unite(std::int32_t a, std::int32_t b) const;
  bool is_runnable_as_one(std::int32_t a, std::int32_t b, const IterationSpace& space, const Union& both) const;
  void merge(std::int32_t whole, std::int32_t part, IterationSpace space, Union both);

  Program& program_;
  const Target& target_;
  ClusterOrder order_;
  Readers readers_;
  std::vector<Summary> summaries_;
};

}  // namespace russet::compile::passes
