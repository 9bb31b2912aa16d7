#pragma once
// The autograd record of tensors: which entry of the tape made them, or that they are leaves that want a gradient.
#include <russet/autograd.h>

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "graph/tensor_state.h"

namespace russet::autograd {

class Function;
class History;

/// Where a gradient goes: to the entry of the tape that made the value, or to a leaf; empty if nobody wants it.
struct Edge {
  Ref<Function> function;
  Ref<History> leaf;
  explicit operator bool() const { return function || leaf; }
};

/// A gradient that is kept: a leaf's, or that of a result which retains it. Backward passes of several threads may add
/// to it.
class KeptGradient final : public RefCounted {
 public:
  Tensor get() const;
  void set(Tensor gradient);
  /// Lets `update` make the new gradient of the present one, while no other thread does.
  void update(base::FunctionRef<Tensor(const Tensor& present)> update);

 private:
  mutable std::mutex mutex_;
  Tensor gradient_;
};

/// An entry of the tape: maps the gradient of one result to gradients of its inputs. Backward passes of several threads
/// may use it at once.
class Function : public RefCounted, public graph::SavedNodes {
 public:
  explicit Function(std::vector<Edge> inputs);
  ~Function() override;

  std::uint64_t sequence() const { return sequence_; }
  const std::vector<Edge>& inputs() const { return inputs_; }
  /// One gradient an input, in the shape and type of that input; undefined where none is wanted or it is zero.
  /// Throws AutogradError if what it needs was freed.
  virtual std::vector<Tensor> gradients(const Tensor& gradient) = 0;
  /// Lets go of saved values.
  virtual void release() {}
  std::span<const graph::NodeRef> saved() const override { return {}; }
  virtual std::string_view name() const = 0;

  /// Where this result's gradient is kept (retain_grad); nullptr if it is not.
  Ref<KeptGradient> kept_gradient() const;
  void keep_gradient(Ref<KeptGradient> kept);

 protected:
  /// Guards what release() lets go of.
  base::SpinLock& lock() const { return lock_; }

 private:
  std::vector<Edge> inputs_;
  std::uint64_t sequence_;
  mutable base::SpinLock lock_;
  Ref<KeptGradient> kept_;
};

class History final : public graph::History {
 public:
  explicit History(graph::Geometry root) : root(std::move(root)) {}
  ~History() override;

  bool requires_grad() const { return leaf_requires_grad || function; }
  /// Replaces the entry that made the value, after an in-place write.
  void rebase(Ref<Function> entry);

  /// The geometry of the tensor that the record is about; gradients have its sizes.
  graph::Geometry root;
  Ref<Function> function;
  bool leaf_requires_grad = false;
  /// Of leaves that require a gradient, and of results that retain theirs.
  Ref<KeptGradient> gradient;
  /// Of a view made while grad mode was off: what it views. PyTorch refuses in-place writes to it in grad mode once
  /// a gradient is involved.
  Ref<History> viewed_without_grad;
  /// Counts rebase(), so that cached entries of views know when they are stale.
  std::uint64_t generation = 0;
  /// Guards the cached entries of views.
  std::mutex views;
};

/// The history of a tensor, or nullptr.
History* history_of(const Tensor& tensor);
/// The history of a tensor, made if it has none.
Ref<History> require_history(const Tensor& tensor);
/// Where the gradient of this tensor goes. Views get an entry of their own, kept with the handle; it leads to the entry
/// of the view that they were made from, so that this one has a gradient too.
Edge edge_of(const Tensor& tensor);
/// Keeps the gradient of a tensor that is not a leaf: retain_grad.
void retain_gradient(const Tensor& tensor);
/// What the tensor's .grad is; undefined if there is none.
Tensor gradient_of(const Tensor& tensor);
/// A gradient that could not be computed counts as none: backward() has thrown.
bool has_failed(const Tensor& gradient);
/// A tensor for a saved value, connected to the tape through `edge` if grad mode is on.
Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge);

}  // namespace russet::autograd
