#pragma once
// Checkpoints: nodes that a flush does not keep for backward, and that backward records again when it reads them.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace russet::graph {

/// While one lives, what its thread records belongs to it. They nest.
class Checkpoint {
 public:
  Checkpoint();
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// The value is a result: it is kept for backward, unless there is a checkpoint around this one, which then has it.
  void release(Node& result) const;
  /// The number of the innermost checkpoint of this thread; 0 for none.
  static std::uint32_t current();

 private:
  std::uint32_t number_;
  std::uint32_t around_;
};

/// What a backward pass has recorded again. While one lives, its thread's calls of computed_again() share it.
class RecordedAgain {
 public:
  RecordedAgain();
  ~RecordedAgain();
  RecordedAgain(const RecordedAgain&) = delete;
  RecordedAgain& operator=(const RecordedAgain&) = delete;

 private:
  friend NodeRef computed_again(const NodeRef& node);
  NodeRef of(const NodeRef& node);
  NodeRef copy_of(const NodeRef& node);

  struct Copy {
    NodeRef original;  // so that its address is not used again
    NodeRef node;
  };
  std::unordered_map<const Node*, Copy> copies_;
  RecordedAgain* around_;
};

/// The value for backward: of a pending node of a checkpoint a copy of it, with copies of what it is computed from up
/// to what was there before the checkpoint; any other node itself. Random numbers are the same: their offsets belong
/// to the nodes.
NodeRef computed_again(const NodeRef& node);

}  // namespace russet::graph
