#pragma once
// What a flush keeps of the forward pass for the backward pass.
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/numbering.h"
#include "graph/min_cut.h"
#include "graph/node.h"

namespace russet::graph {

/// Chooses the nodes of fewest bytes from which all saved values can be computed again: a minimum cut between what only
/// the forward pass computes (contractions, reductions and the like) and the saved values. Elementwise, movement,
/// random and source nodes behind the cut stay recipes. Of cuts with equal bytes, the one nearest to the saved values.
/// What the function of a checkpoint recorded is always a recipe, but for its results, which never are.
class SavedSet {
 public:
  void clear() { saved_.clear(); }
  void add(const NodeRef& saved) { saved_.push_back(saved); }
  /// Appends what must be in memory to `outputs`; what is among them already is there at no cost. Holds no node
  /// afterwards.
  void choose(std::vector<NodeRef>& outputs);

 private:
  struct Candidate {
    NodeRef node;
    std::int32_t first_input = 0;  // in inputs_
    bool is_recipe = false;
    bool is_saved = false;
  };

  /// The number of what is in memory or will be.
  static constexpr std::int32_t at_no_cost = -1;

  void visit(const std::vector<NodeRef>& outputs);
  std::int32_t meet(const NodeRef& node);
  std::span<const std::int32_t> inputs_of(std::size_t candidate) const;
  std::uint64_t structure() const;
  void cut();

  std::vector<NodeRef> saved_;
  base::Numbering<Node> outputs_;
  base::Numbering<Node> numbers_;
  std::vector<Candidate> candidates_;  // by number
  std::vector<std::int32_t> inputs_;   // numbers, candidate after candidate
  std::vector<std::int32_t> kept_;     // numbers
  MinCut min_cut_;
  // Cuts by a hash of the structure, for loops. Were two structures to share a hash, something else would be kept:
  // still correct, since what is not kept is computed again.
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> known_;
};

}  // namespace russet::graph
