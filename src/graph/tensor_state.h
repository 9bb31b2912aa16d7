#pragma once
// What a Tensor handle points to, and the cell that handles share.
#include <russet/tensor.h>

#include "graph/geometry.h"
#include "graph/node.h"
#include "graph/recorder.h"

namespace russet::graph {

/// A storage cell: holds the current value. An in-place write replaces the value; nodes never change.
class Cell final : public RefCounted {
 public:
  explicit Cell(NodeRef value);
  ~Cell() override;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  /// The value after all writes that did not fail; a write that fails has not happened.
  const NodeRef& value() const { return last_sound().value; }
  std::int64_t numel() const { return russet::numel(now_.value->shape); }
  /// Grows with every write; that of the value before, while the last write has failed.
  std::uint64_t version() const { return last_sound().version; }

  /// Replaces the value after an in-place write.
  void write(NodeRef value);
  /// Replaces the value by one that is in memory, without counting as a write (loading, moving).
  void reset(NodeRef leaf);

  /// A cell whose value lives across steps (parameters and buffers of modules): what is computed from such cells
  /// alone may be kept.
  bool persistent() const { return persistent_; }
  /// Whether a captured function writes it as a gradient: if another gradient takes its place, calls are recorded.
  bool is_captured_gradient() const { return captured_gradient_.load(std::memory_order_relaxed); }
  void mark_captured_gradient() { captured_gradient_.store(true, std::memory_order_relaxed); }
  void mark_persistent();

 private:
  friend class Capture;
  friend class Recorder;
  struct Written {
    NodeRef value;
    std::uint64_t version = 0;
  };
  const Written& last_sound() const { return now_.value->failed() ? sound_before() : now_; }
  const Written& sound_before() const;
  void forget_failed_writes();

  Written now_;
  /// What the cell held before, the oldest first, since its value was last seen in memory.
  Written before_;
  std::vector<Written> later_;
  std::uint64_t writes_ = 0;
  /// Whose list of pending cells this one is in; that list's lock guards what a flush looks at.
  std::atomic<Recorder*> pending_in_{nullptr};
  std::size_t pending_position_ = 0;
  bool persistent_ = false;
  std::atomic<bool> captured_gradient_{false};
};

/// The autograd record of a tensor and its differentiable views; autograd derives from it.
class History : public RefCounted {};

/// The place of a history: threads that view one tensor side by side may all be about to make its first one.
class HistoryPointer {
 public:
  explicit HistoryPointer(Ref<History> history) : owner_(std::move(history)), history_(owner_.get()) {}

  History* get() const { return history_.load(std::memory_order_acquire); }
  /// Puts this one there if there is none yet. Any number of threads may do so at once.
  void offer(const Ref<History>& history) {
    History* none = nullptr;
    if (history_.compare_exchange_strong(none, history.get(), std::memory_order_acq_rel)) owner_ = history;
  }
  /// While no other thread uses the tensor.
  void replace(Ref<History> history) {
    history_.store(history.get(), std::memory_order_release);
    owner_ = std::move(history);
  }

 private:
  Ref<History> owner_;
  std::atomic<History*> history_;
};

struct TensorState final : public RefCounted {
  TensorState(Ref<Cell> cell, Geometry geometry, Ref<History> history, bool root)
      : cell(std::move(cell)), geometry(std::move(geometry)), history(std::move(history)), root(root) {}
  ~TensorState() override;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  Ref<Cell> cell;
  Geometry geometry;
  /// Empty for tensors that have nothing to do with autograd so far.
  HistoryPointer history;
  /// Whether this is the tensor that the history is about, rather than a view of it.
  bool root = true;
  /// The tape's entry for reading this view, and which generation of the history it belongs to.
  Ref<RefCounted> view_entry;
  std::uint64_t view_generation = 0;
  /// Of a view of a view: that other view, and the generation of the history in which this one was made.
  Ref<TensorState> parent;
  std::uint64_t parent_generation = 0;
};

/// The in-place write at the level of values. A pinned cell's memory holds the new value when this returns.
void write_cell(Cell& cell, NodeRef value);

/// A tensor with a cell of its own that holds `value`.
Tensor wrap(NodeRef value);
/// The same with its axes elsewhere in memory: `value` holds the elements in the order in which `geometry` has them.
Tensor wrap(NodeRef value, Geometry geometry);
/// The tensor's elements on another device, without its gradient: in the same memory if both devices can use it (the
/// first of them that writes gets memory of its own), in row-major copies elsewhere.
Tensor moved(const Tensor& tensor, Device device);
/// The node that holds the elements of `tensor` in the shape of its sizes: the cell's value, or a strided node on it.
NodeRef value_of(const Tensor& tensor);
/// The same for another geometry on the tensor's cell.
NodeRef value_of(const Tensor& tensor, const Geometry& geometry);

/// A tensor's elements in the order of its axes in memory, without gaps, and the geometry that has them as the tensor.
struct PackedTensor {
  NodeRef node;
  Geometry geometry;
};
PackedTensor packed(const Tensor& tensor);
/// How a geometry looks from the value of a cell: a reshape, or a view whose offset is a run-time argument when the
/// value is in memory (so that slices that move from step to step share a plan).
NodeInfo view_info(const Geometry& geometry, const Node& base);

}  // namespace russet::graph
