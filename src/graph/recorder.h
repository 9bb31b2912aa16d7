#pragma once
// Recorder: what a thread has recorded and not yet computed.
#include <atomic>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "graph/node.h"

namespace russet::graph {

class Capture;
class Cell;
class Recorder;
struct Outcome;
struct Work;

/// Values that the tape will read. A flush before backward() keeps a cut of their history.
class SavedNodes {
 public:
  virtual ~SavedNodes();
  /// Any thread may ask while this is registered.
  virtual std::span<const NodeRef> saved() const = 0;

 protected:
  /// Adds this to the calling thread's list; call when saved() is complete.
  void register_saved();
  /// Call before saved() shrinks.
  void unregister_saved();

 private:
  friend class Recorder;
  std::atomic<Recorder*> saved_in_{nullptr};
  std::size_t saved_position_ = 0;
};

/// Records a primitive: infers and checks the result's shape and type at once, runs nothing.
/// `given` holds dtype, shape, attributes and argument as the operator's rules need them.
NodeRef record(ops::Op op, NodeRefs inputs, NodeInfo&& given = {});
inline NodeRef record(ops::Op op, NodeRef a, NodeInfo&& given = {}) {
  return record(op, {std::move(a), nullptr, nullptr}, std::move(given));
}
inline NodeRef record(ops::Op op, NodeRef a, NodeRef b, NodeInfo&& given = {}) {
  return record(op, {std::move(a), std::move(b), nullptr}, std::move(given));
}
/// As record, of operators with any number of inputs.
NodeRef record_many(ops::Op op, std::vector<NodeRef> inputs, NodeInfo&& given = {});
/// A number as a node of shape []: known at run time only, or part of the plan.
NodeRef scalar(Scalar value, DType dtype, Device device);
/// The run-time argument of such a node.
std::uint64_t scalar_argument(Scalar value, DType dtype);
NodeRef constant(Scalar value, DType dtype, Device device, const Shape& shape = {});

/// Computes everything that the calling thread has pending. Throws the first failure that this thread has not been
/// told of; whatever did not depend on it is computed.
void flush();
/// Likewise, where a step of training ends a part of its work; nothing while a Deferral lives.
void mark();

/// While one lives, marks of the thread that made it compute nothing: what comes between them becomes one plan.
class Deferral {
 public:
  Deferral();
  ~Deferral();
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;
};
/// Computes `node` (with all else that is pending), and waits for it. Throws what made it fail, and nothing that made
/// others fail.
void materialise(const NodeRef& node);
/// Throws why a node failed, if it did. The calling thread has been told of it then.
void require_sound(const Node& node);

/// A thread's pending work. Cells and saved sets may be written or destroyed on other threads, hence the lock. Never
/// destroyed: what a thread leaves behind when it ends serves another one.
class Recorder final {
 public:
  static Recorder& current();

  void add(Cell& cell);
  static void remove(Cell& cell);
  void add(SavedNodes& saved);
  static void remove(SavedNodes& saved);

  /// Counts a recorded node; computes when too many are pending.
  void count_node();
  /// Nodes recorded since the last flush, which the engine's counters learn of then.
  std::size_t uncounted() const { return nodes_; }
  /// Computes all pending cells, what the tape needs of the rest, and `also`. Failures wait for tell().
  void compute(const NodeRef& also = {});
  /// Computes a work that was captured, whose outputs cells wait for already. `nodes`: those of its leaves and outputs,
  /// by position; lets go of the leaves'. Throws why it failed.
  void compute_again(const Work& work, std::span<NodeRef> nodes, Outcome& outcome);
  /// Throws the first failure that this thread was not told of; it counts as told then, and those after it, too.
  void tell();
  /// This failure is being thrown. Those of the same flush count as told then, too: the work that they belong to was
  /// recorded before whoever is told of the first one asked.
  void note_told(const std::exception_ptr& failure);
  /// Whether marks compute.
  bool obeys_marks() const { return deferrals_ == 0; }

 private:
  friend class Capture;
  friend class Deferral;
  friend class ThreadsRecorder;
  class Scratch;
  /// A failure that the thread was not told of, and which of its flushes found it.
  struct UntoldFailure {
    std::exception_ptr failure;
    std::uint64_t flush;
  };

  Recorder();
  ~Recorder();
  void count_nodes();
  std::vector<UntoldFailure>::iterator find_untold(const std::exception_ptr& failure);
  void note_failure(const std::exception_ptr& failure);
  void collect(const NodeRef& also);
  void for_each_restorable(base::FunctionRef<void(Node&)> visit);
  void compute_collected();
  /// Cells whose values are settled leave the list.
  void release();
  void abandon();

  base::SpinLock lock_;
  std::vector<Cell*> cells_;
  std::vector<SavedNodes*> saved_;
  std::size_t nodes_ = 0;
  bool flushing_ = false;
  int deferrals_ = 0;
  Capture* capture_ = nullptr;
  std::uint64_t flushes_ = 0;
  std::vector<UntoldFailure> untold_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace russet::graph
