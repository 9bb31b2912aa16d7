#pragma once
// Node: one recorded value. Immutable but for becoming materialised.
#include <russet/device.h>
#include <russet/ref.h>
#include <russet/shape.h>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/buffer.h"
#include "ops/attributes.h"
#include "ops/op.h"

namespace russet::graph {

class Node;
using NodeRef = Ref<Node>;
/// The inputs of a node of nearly every operator; those that it lacks come last.
using NodeRefs = std::array<NodeRef, 3>;

/// The plain data of a node, as operators, passes and keys see it.
struct NodeInfo {
  ops::Op op = ops::Op::leaf;
  DType dtype = DType::float32;
  Device device{};
  Shape shape;
  ops::Attributes attributes;
  /// The run-time argument: a double or an int64 by dtype (scalar), an offset (strided, overwrite, random).
  std::uint64_t argument = 0;
};

class Node final : public RefCounted, public NodeInfo {
 public:
  Node(NodeInfo info, NodeRefs inputs);
  /// Any number of inputs.
  Node(NodeInfo info, std::vector<NodeRef> inputs);
  /// A leaf: a value that is in memory.
  Node(NodeInfo info, Ref<Buffer> buffer);
  ~Node() override;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  bool materialised() const { return static_cast<bool>(buffer_); }
  const Ref<Buffer>& buffer() const { return buffer_; }
  /// At least three, those that it lacks last.
  std::span<const NodeRef> inputs() const {
    if (rare_ && !rare_->inputs.empty()) return rare_->inputs;
    return inputs_;
  }
  /// Record order within all threads; inputs always have smaller numbers.
  std::uint64_t sequence() const { return sequence_; }
  /// Hash over operator, type, shape and attributes.
  std::uint64_t hash() const { return hash_; }

  /// Turns the node into a leaf and lets go of its inputs.
  void materialise(Ref<Buffer> buffer);
  /// Marks a value that a failed run may have destroyed: reading throws `error` from now on.
  void fail(std::string error);
  const std::string* failure() const { return rare_ && rare_->failure ? &*rare_->failure : nullptr; }

  /// The value of a cell that lives across steps.
  bool persistent = false;

  /// Of a persistent leaf: casts of it that evaluations computed, kept as long as this value (hoisting). Of a pending
  /// cast: `hoisted` asks that its result be kept so.
  std::vector<NodeRef> kept_casts;
  bool hoisted = false;

  // Scratch of the flush that is under way (one at a time; guarded by its lock).
  struct FlushMark {
    std::uint64_t epoch = 0;
    std::int32_t index = -1;
    std::uint32_t uses = 0;
  };
  FlushMark mark;

 private:
  /// What few nodes have, so that the others are not larger for it.
  struct Rare {
    std::vector<NodeRef> inputs;  // all of them, if there are more than three
    std::optional<std::string> failure;
  };
  void let_go_of_inputs();

  NodeRefs inputs_;
  NodeRef next_doomed_;
  Ref<Buffer> buffer_;
  std::unique_ptr<Rare> rare_;
  std::uint64_t sequence_ = 0;
  std::uint64_t hash_ = 0;
};

/// Elements of a contiguous value in bytes.
std::size_t byte_size(const NodeInfo& node);

}  // namespace russet::graph
