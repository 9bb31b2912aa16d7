#pragma once
// Closure: what a flush computes, in record order, and what it may overwrite.
#include <vector>

#include "graph/executor.h"
#include "graph/node.h"

namespace russet::graph {

/// Adds the nodes that must be in memory so that `saved` can be computed again later: elementwise, movement, random
/// and source nodes stay recipes; contractions, reductions and the like are kept.
void add_saved_cut(const NodeRef& saved, std::vector<NodeRef>& outputs);

[[noreturn]] void throw_device_mismatch(ops::Op op, const std::array<NodeRef, 3>& inputs);

/// Used again from flush to flush, so that a flush allocates nothing; guarded by the flush lock.
class Closure {
 public:
  /// The work of the first output's device, which leaves the list. `restorable` are leaves that pending cells hold
  /// only until the work starts. The work holds until the next call of take() or clear().
  Work& take(std::vector<NodeRef>& outputs, const std::vector<Node*>& restorable);
  /// After the work: casts of parameters that are to be kept stay with their parameter.
  void keep_hoisted();
  /// Lets go of all nodes.
  void clear();

 private:
  void visit();
  void order();
  void find_donatable(const std::vector<Node*>& restorable);

  struct Hoisted {
    NodeRef leaf;
    NodeRef cast;
  };

  std::vector<NodeRef> outputs_;
  std::vector<Hoisted> hoisted_;
  std::vector<Node*> nodes_;
  std::vector<Node*> stack_;
  std::vector<bool> survives_;
  Work work_;
};

}  // namespace russet::graph
