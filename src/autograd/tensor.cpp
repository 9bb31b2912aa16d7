// What a tensor answers about gradients.
#include <fmt/format.h>
#include <russet/error.h>

#include "autograd/history.h"
#include "autograd/tape.h"
#include "graph/capture.h"

namespace russet {
namespace {

graph::TensorState& state_of(const Tensor& tensor, const char* function) {
  if (tensor.defined()) return *tensor.state();
  throw ValueError(
      fmt::format("{}: the tensor is undefined: it was declared but nothing was assigned to it", function));
}

void require_floating(const Tensor& tensor, const char* function) {
  if (is_floating(tensor.dtype())) return;
  throw TypeError(
      fmt::format("{}: only floating tensors can require a gradient, not {}", function, name_of(tensor.dtype())));
}

void require_callable(bool is_callable, const char* function) {
  if (!is_callable) throw ValueError(fmt::format("{}: the hook is an empty function", function));
}

[[noreturn]] void throw_no_gradient(const char* function) {
  throw AutogradError(
      fmt::format("{}: the tensor does not require a gradient, so that none would ever arrive", function));
}

/// The hooks of a leaf, none at first.
autograd::LeafHooks& leaf_hooks_of(autograd::History& leaf, const graph::TensorState& state) {
  static std::mutex mutex;  // two threads may be about to register the first one
  const std::lock_guard lock(mutex);
  if (!leaf.leaf_hooks()) leaf.set_leaf_hooks(std::make_shared<autograd::LeafHooks>(state.cell));
  return *leaf.leaf_hooks();
}

}  // namespace

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  state_of(*this, "backward");
  autograd::backward(*this, gradient, retain_graph, create_graph);
}

bool Tensor::requires_grad() const {
  const autograd::History* history = state_ ? autograd::history_of(*this) : nullptr;
  return history && history->requires_grad();
}

bool Tensor::is_leaf() const {
  const graph::TensorState& state = state_of(*this, "is_leaf");
  const autograd::History* history = autograd::history_of(*this);
  if (!history || !history->requires_grad()) return true;
  return !history->entry && state.root;
}

Tensor& Tensor::requires_grad_(bool value) {
  graph::TensorState& state = state_of(*this, "requires_grad_");
  if (value) require_floating(*this, "requires_grad_");
  if (!is_leaf()) {
    if (value) return *this;
    throw AutogradError("requires_grad_: only leaves can stop requiring a gradient; use detach()");
  }
  if (value == requires_grad()) return *this;
  if (state.cell->persistent()) graph::note_changed_setting();
  if (value) {
    // A record of its own: views that were made before have nothing to do with it, as in PyTorch.
    autograd::History* const before = autograd::history_of(*this);
    auto history = make_ref<autograd::History>(state.geometry);
    history->leaf_requires_grad = true;
    if (before && state.root) history->set_leaf_hooks(before->leaf_hooks());
    history->gradient =
        before && state.root && before->gradient ? before->gradient : make_ref<autograd::KeptGradient>();
    state.history.replace(history);
    state.root = true;
  } else {
    autograd::history_of(*this)->leaf_requires_grad = false;
  }
  return *this;
}

Tensor Tensor::grad() const {
  state_of(*this, "grad");
  return autograd::gradient_of(*this);
}

void Tensor::set_grad(const Tensor& gradient) const {
  state_of(*this, "set_grad");
  const auto refuse = [&](const char* what, const std::string& has, const std::string& wants) {
    throw ValueError(fmt::format("set_grad: the gradient's {} is {}, the tensor's {}", what, has, wants));
  };
  if (gradient.defined()) {
    if (gradient.sizes() != sizes()) refuse("shape", russet::to_string(gradient.sizes()), russet::to_string(sizes()));
    if (gradient.dtype() != dtype()) {
      refuse("type", std::string(name_of(gradient.dtype())), std::string(name_of(dtype())));
    }
    if (!(gradient.device() == device())) {
      refuse("device", russet::to_string(gradient.device()), russet::to_string(device()));
    }
  }
  const Ref<autograd::History> history = autograd::require_history(*this);
  if (!history->gradient && gradient.defined()) history->gradient = make_ref<autograd::KeptGradient>();
  if (history->gradient) history->gradient->set(gradient);
}

Tensor Tensor::detach() const {
  const graph::TensorState& state = state_of(*this, "detach");
  return Tensor(make_ref<graph::TensorState>(state.cell, state.geometry, nullptr, true));
}

void Tensor::retain_grad() const {
  state_of(*this, "retain_grad");
  if (!is_leaf()) autograd::retain_gradient(*this);
}

HookHandle Tensor::add_hook(std::function<Tensor(const Tensor& gradient)> hook) const {
  state_of(*this, "register_hook");
  require_callable(static_cast<bool>(hook), "register_hook");
  const autograd::Edge edge = autograd::own_edge_of(*this);
  if (!edge) throw_no_gradient("register_hook");
  if (edge.entry) return edge.entry->hooks(edge.result).add(std::move(hook));
  return leaf_hooks_of(*edge.leaf, *state()).gradient.add(std::move(hook));
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook) const {
  state_of(*this, "register_post_accumulate_grad_hook");
  require_callable(static_cast<bool>(hook), "register_post_accumulate_grad_hook");
  if (!requires_grad()) throw_no_gradient("register_post_accumulate_grad_hook");
  if (!is_leaf()) {
    throw AutogradError(
        "register_post_accumulate_grad_hook: only leaves accumulate their gradient; use register_hook() on the result "
        "of an operator");
  }
  return leaf_hooks_of(*autograd::history_of(*this), *state()).accumulated.add(std::move(hook));
}

void Tensor::set_data(const Tensor& other) const {
  graph::TensorState& state = state_of(*this, "set_data");
  const graph::TensorState& source = state_of(other, "set_data");
  graph::note_changed_setting();  // captured functions know the cell
  if (requires_grad()) require_floating(other, "set_data");
  if (!is_leaf() && (other.sizes() != sizes() || other.dtype() != dtype())) {
    throw AutogradError(fmt::format(
        "set_data: this is a result of an operator, {} {}, and cannot become {} {}. Only leaves change shape and type.",
        name_of(dtype()), russet::to_string(sizes()), name_of(other.dtype()), russet::to_string(other.sizes())));
  }
  const bool persistent = state.cell->persistent();
  const bool is_alike = other.sizes() == sizes() && other.dtype() == dtype() && other.device() == device();
  state.cell = source.cell;
  state.geometry = source.geometry;
  if (persistent) state.cell->mark_persistent();
  autograd::History* const history = autograd::history_of(*this);
  if (!history || !state.root) return;
  history->root = state.geometry;
  if (const std::shared_ptr<autograd::LeafHooks> hooks = history->leaf_hooks()) hooks->cell = state.cell;
  ++history->generation;  // entries of views are of the data before
  if (!is_alike && history->gradient) history->gradient->set({});
}

}  // namespace russet
