#pragma once
// Node: one recorded value. What it is computed by never changes; whether it is computed does, once.
#include <russet/device.h>
#include <russet/ref.h>
#include <russet/shape.h>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "graph/buffer.h"
#include "ops/operation.h"

namespace russet::graph {

class Node;
class Keepsake;
using NodeRef = Ref<Node>;
/// The inputs of a node of nearly every operator; those that it lacks come last.
using NodeRefs = std::array<NodeRef, 3>;

/// The plain data of a node.
struct NodeInfo : ops::Operation {
  Device device{};
  /// The run-time argument: a double or an int64 by dtype (scalar), an offset (strided, overwrite, random).
  std::uint64_t argument = 0;
};

/// Guards what flushes of several threads share in nodes: inputs, states, what is kept with them. Held for moments,
/// never while something is compiled, runs or is destroyed.
std::mutex& graph_mutex();

/// What letting go of inputs leaves behind, to be destroyed once graph_mutex() is free again.
using Leftovers = std::vector<NodeRef>;

class Node final : public RefCounted, public NodeInfo {
 public:
  enum class State : std::uint8_t {
    pending,    // recorded
    computing,  // an output of a flush that is under way: whoever needs it waits for that
    ready,      // in memory: a leaf, whatever it was recorded as
    failed,     // reading it throws
  };

  Node(const NodeInfo& info, NodeRefs inputs);
  /// Any number of inputs.
  Node(const NodeInfo& info, std::vector<NodeRef> inputs);
  /// A leaf: a value that is in memory.
  Node(const NodeInfo& info, Ref<Buffer> buffer);
  ~Node() override;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  State state() const { return state_.load(std::memory_order_acquire); }
  bool materialised() const { return state() == State::ready; }
  bool failed() const { return state() == State::failed; }
  /// Where a value that is materialised lies.
  const Ref<Buffer>& buffer() const { return buffer_; }
  /// Why a value failed; see require_sound() in recorder.h.
  const std::exception_ptr& failure() const { return rare_->failure; }

  /// Record order within all threads; inputs always have smaller numbers.
  std::uint64_t sequence() const { return sequence_; }
  /// Hash over operator, type, shape and attributes.
  std::uint64_t hash() const { return hash_; }
  /// Likewise, of the leaf that the node becomes.
  std::uint64_t leaf_hash() const;

  /// Whether this is the value of a cell that lives across steps.
  bool persistent() const { return persistent_.load(std::memory_order_relaxed); }
  void mark_persistent() { persistent_.store(true, std::memory_order_relaxed); }
  /// Whether it is on the tape, or was recorded by a backward pass: parameters that it is computed from are about to
  /// change.
  bool learns() const { return learns_.load(std::memory_order_relaxed); }
  void mark_learning() { learns_.store(true, std::memory_order_relaxed); }
  /// The checkpoint whose function recorded the node (checkpoint.h), 0 for none, or checkpoint_result.
  std::uint32_t checkpoint() const { return checkpoint_.load(std::memory_order_relaxed); }
  static constexpr std::uint32_t checkpoint_result = ~std::uint32_t{0};
  /// Whether it is not kept for backward.
  bool in_checkpoint() const { return checkpoint() != 0 && checkpoint() != checkpoint_result; }
  void set_checkpoint(std::uint32_t checkpoint) { checkpoint_.store(checkpoint, std::memory_order_relaxed); }
  /// Of a node that computes for backward again what another one computed in a checkpoint: plans keep the two apart.
  /// Set before others see the node.
  bool again = false;

  // For holders of graph_mutex().

  /// At least three, those that it lacks last; none once the node is materialised or has failed.
  std::span<const NodeRef> inputs() const {
    if (rare_ && !rare_->inputs.empty()) return rare_->inputs;
    return inputs_;
  }
  void set_computing(bool computing) { set(computing ? State::computing : State::pending); }
  /// Turns the node into a leaf.
  void materialise(Ref<Buffer> buffer, Leftovers& leftovers);
  /// Reading throws `failure` from now on.
  void fail(std::exception_ptr failure, Leftovers& leftovers);
  /// What is kept with this value (keeping.h). It is no part of the node: who reads a node may keep something with it.
  std::vector<Ref<Keepsake>>& kept() const { return rare().kept; }

 private:
  /// What few nodes have, so that the others are not larger for it.
  struct Rare {
    std::vector<NodeRef> inputs;  // all of them, if there are more than three
    std::vector<Ref<Keepsake>> kept;
    std::exception_ptr failure;
  };
  Rare& rare() const;
  void set(State state) { state_.store(state, std::memory_order_release); }
  void give_up_inputs(Leftovers& leftovers);
  void let_go_of_inputs();

  NodeRefs inputs_;
  NodeRef next_doomed_;
  Ref<Buffer> buffer_;
  mutable std::unique_ptr<Rare> rare_;
  std::uint64_t sequence_ = 0;
  std::uint64_t shape_hash_ = 0;
  std::uint64_t hash_ = 0;
  std::atomic<State> state_{State::pending};
  std::atomic<bool> persistent_{false};
  std::atomic<bool> learns_{false};
  std::atomic<std::uint32_t> checkpoint_{0};
};

/// The number of the node that is recorded next, in any thread, at least.
std::uint64_t next_node();

/// Elements of a contiguous value in bytes.
std::size_t byte_size(const NodeInfo& node);

}  // namespace russet::graph
