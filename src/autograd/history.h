#pragma once
// The autograd record of tensors: which entry of the tape made them, or that they are leaves that want a gradient.
#include <russet/autograd.h>
#include <russet/hook_list.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "graph/tensor_state.h"

namespace russet::autograd {

class TapeEntry;
class History;

/// Where a gradient goes: to the entry of the tape that made the value, or to a leaf; empty if nobody wants it.
struct Edge {
  Ref<TapeEntry> entry;
  Ref<History> leaf;
  std::uint32_t result = 0;  // which of the entry's results the value is
  explicit operator bool() const { return entry || leaf; }
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

using GradientHooks = Hooks<Tensor(const Tensor& gradient)>;

/// What happens to the gradient of a result once all of it has arrived: hooks may replace it, then it is kept.
struct ResultWatch {
  std::uint32_t result = 0;
  GradientHooks hooks;
  Ref<KeptGradient> kept;  // nullptr unless retain_grad() asked for it
};

/// The hooks of a leaf. Backward passes look for leaves that have some only while an object of this lives.
struct LeafHooks {
  explicit LeafHooks(Ref<graph::Cell> cell);
  ~LeafHooks();
  LeafHooks(const LeafHooks&) = delete;
  LeafHooks& operator=(const LeafHooks&) = delete;
  /// Whether any leaf has hooks.
  static bool exist();

  GradientHooks gradient;
  Hooks<void(const Tensor& leaf)> accumulated;
  Ref<graph::Cell> cell;  // the leaf's, from which the hooks' argument is made
};

/// An entry of the tape: maps the gradients of its results, which is one nearly always, to gradients of its inputs.
/// Backward passes of several threads may use it at once.
class TapeEntry : public RefCounted, public graph::SavedNodes {
 public:
  explicit TapeEntry(std::vector<Edge> inputs);
  ~TapeEntry() override;

  std::uint64_t sequence() const { return sequence_; }
  const std::vector<Edge>& inputs() const { return inputs_; }
  /// One gradient an input, in the shape and type of that input; undefined where none is wanted or it is zero.
  /// `arrived`: one gradient a result, up to the last that has one; undefined where none arrived.
  /// Throws AutogradError if what it needs was freed.
  virtual std::vector<Tensor> gradients(std::span<const Tensor> arrived) = 0;
  /// Lets go of saved values.
  virtual void release() {}
  /// Flushes need not keep the saved values in memory any more; they can still be computed again.
  void stop_saving() { unregister_saved(); }
  std::span<const graph::NodeRef> saved() const override { return {}; }
  virtual std::string_view name() const = 0;

  /// Results whose gradients are watched.
  std::vector<ResultWatch> watches() const;
  /// The hooks on a result's gradient.
  GradientHooks hooks(std::uint32_t result);
  /// Where a result's gradient is kept (retain_grad); nullptr if it is not.
  Ref<KeptGradient> kept_gradient(std::uint32_t result = 0) const;
  void keep_gradient(std::uint32_t result, Ref<KeptGradient> kept);

 protected:
  /// Guards what release() lets go of.
  base::SpinLock& lock() const { return lock_; }

 private:
  ResultWatch& watch(std::uint32_t result);

  std::vector<Edge> inputs_;
  std::uint64_t sequence_;
  mutable base::SpinLock lock_;
  std::unique_ptr<std::vector<ResultWatch>> watches_;
};

class History final : public graph::History {
 public:
  explicit History(graph::Geometry root) : root(std::move(root)) {}
  ~History() override;
  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  bool requires_grad() const { return leaf_requires_grad || entry; }
  /// Where the gradient of the value goes, if it wants one.
  Edge edge();
  /// Replaces the entry that made the value, after an in-place write.
  void rebase(const Edge& made_by);
  /// The hooks of a leaf; nullptr if it has none.
  std::shared_ptr<LeafHooks> leaf_hooks();
  void set_leaf_hooks(std::shared_ptr<LeafHooks> hooks);

  /// The geometry of the tensor that the record is about; gradients have its sizes.
  graph::Geometry root;
  Ref<TapeEntry> entry;
  std::uint32_t result = 0;  // which of the entry's results this is
  bool leaf_requires_grad = false;
  /// Of leaves that require a gradient, and of results that retain theirs.
  Ref<KeptGradient> gradient;
  /// Of a view made while grad mode was off: what it views. PyTorch refuses in-place writes to it in grad mode once
  /// a gradient is involved.
  Ref<History> viewed_without_grad;
  /// Counts rebase(), so that cached entries of views know when they are stale.
  std::uint64_t generation = 0;
  /// Guards the cached entries of views, and whether there are hooks.
  std::mutex mutex;

 private:
  std::shared_ptr<LeafHooks> leaf_hooks_;
};

/// The history of a tensor, or nullptr.
History* history_of(const Tensor& tensor);
/// The history of a tensor, made if it has none.
Ref<History> require_history(const Tensor& tensor);
/// Where the gradient of this tensor goes. Views get an entry of their own, kept with the handle; it leads to the entry
/// of the view that they were made from, so that this one has a gradient too.
Edge edge_of(const Tensor& tensor);
/// Likewise, of this handle alone: also a view that shows all of its tensor gets an entry of its own.
Edge own_edge_of(const Tensor& tensor);
/// Keeps the gradient of a tensor that is not a leaf: retain_grad.
void retain_gradient(const Tensor& tensor);
/// Puts an in-place write to `target` on the tape; `value`: where the gradient of what was written goes. Throws
/// AutogradError for a leaf that requires a gradient, or a view of one.
void tape_write(const Tensor& target, const Edge& value);
/// What the tensor's .grad is; undefined if there is none.
Tensor gradient_of(const Tensor& tensor);
/// A gradient that could not be computed counts as none: backward() has thrown.
bool has_failed(const Tensor& gradient);
/// A tensor for a saved value, connected to the tape through `edge` if grad mode is on.
Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge);

}  // namespace russet::autograd
