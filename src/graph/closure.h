#pragma once
// Closure: what a flush computes, in record order, and what it may overwrite.
#include <span>
#include <vector>

#include "graph/executor.h"
#include "graph/node.h"

namespace russet::graph {

/// Marks of nodes (Node::mark) count if they carry the present epoch. Both are for holders of the flush lock.
std::uint64_t flush_epoch();
std::uint64_t start_epoch();

[[noreturn]] void throw_device_mismatch(ops::Op op, std::span<const NodeRef> inputs);

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
