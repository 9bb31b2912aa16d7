#pragma once
// The autograd record of tensors: which entry of the tape made them, or that they are leaves that want a gradient.
#include <russet/autograd.h>

#include <optional>
#include <span>
#include <vector>

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

/// An entry of the tape: maps the gradient of one result to gradients of its inputs.
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

  // Scratch of a backward pass.
  Tensor incoming;
  /// The history whose .grad keeps this result's gradient (retain_grad).
  History* retained_by = nullptr;

 private:
  std::vector<Edge> inputs_;
  std::uint64_t sequence_;
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
  bool retains_grad = false;
  /// Of a view made while grad mode was off: what it views. PyTorch refuses in-place writes to it in grad mode once
  /// a gradient is involved.
  Ref<History> viewed_without_grad;
  Tensor grad;
  /// Counts rebase(), so that cached entries of views know when they are stale.
  std::uint64_t generation = 0;
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
/// A tensor for a saved value, connected to the tape through `edge` if grad mode is on.
Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge);

}  // namespace russet::autograd
