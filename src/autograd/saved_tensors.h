#pragma once
// Tensors that an entry of the tape keeps for its gradients.
#include <string_view>
#include <vector>

#include "autograd/history.h"

namespace russet::autograd {

/// Values, in the order in which they were added, and how each hangs on the tape. Adding is over before other threads
/// see the entry.
class SavedTensors {
 public:
  /// `edge`: where the tensor's gradient goes. An undefined tensor stays undefined.
  void add(const Tensor& tensor, Edge edge);
  /// A result of the entry itself, which thus does not hold itself alive.
  void add_result(const Tensor& tensor, std::uint32_t result);
  bool empty() const { return views_.empty(); }
  /// What flushes keep; not while release() runs.
  std::span<const graph::NodeRef> nodes() const { return nodes_; }

  /// The tensors, connected to the tape if grad mode is on. Throws AutogradError after release().
  std::vector<Tensor> get(TapeEntry& entry) const;
  void release();

 private:
  struct SavedView {
    graph::Geometry geometry;
    Edge edge;
    bool is_result = false;  // edge.result says which
  };
  void add(const Tensor& tensor, Edge edge, bool is_result);
  std::vector<graph::NodeRef> nodes_or_throw(const TapeEntry& entry) const;

  std::vector<graph::NodeRef> nodes_;
  std::vector<SavedView> views_;
  mutable base::SpinLock lock_;  // for release() on one thread and get() on others
  bool released_ = false;
};

/// The error of a second backward pass through what the first one freed.
[[noreturn]] void throw_freed(std::string_view name);

}  // namespace russet::autograd
