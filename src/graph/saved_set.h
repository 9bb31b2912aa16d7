#pragma once
// What a flush keeps of the forward pass for the backward pass.
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/min_cut.h"
#include "graph/node.h"

namespace russet::graph {

/// Chooses the nodes of fewest bytes from which all saved values can be computed again: a minimum cut between what only
/// the forward pass computes (contractions, reductions and the like) and the saved values. Elementwise, movement,
/// random and source nodes behind the cut stay recipes. Of cuts with equal bytes, the one nearest to the saved values.
/// Guarded by the flush lock.
class SavedSet {
 public:
  void clear();
  void add(const NodeRef& saved) { saved_.push_back(&saved); }
  /// Appends what must be in memory to `outputs`; what is among them already is there at no cost.
  void choose(std::vector<NodeRef>& outputs);

 private:
  void visit(const std::vector<NodeRef>& outputs);
  std::int32_t number(const NodeRef& node);
  std::uint64_t structure() const;
  void cut();

  std::vector<const NodeRef*> saved_;
  std::vector<const NodeRef*> nodes_;  // in the order in which they were met
  std::vector<bool> is_saved_;
  std::vector<std::int32_t> kept_;  // positions in nodes_
  MinCut min_cut_;
  // Cuts by a hash of the structure, for loops. Were two structures to share a hash, something else would be kept:
  // still correct, since what is not kept is computed again.
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> known_;
};

}  // namespace russet::graph
