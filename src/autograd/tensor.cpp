// What a tensor answers about gradients.
#include <fmt/format.h>
#include <russet/error.h>

#include "autograd/history.h"
#include "autograd/tape.h"

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
  return !history->function && state.root;
}

Tensor& Tensor::requires_grad_(bool value) {
  graph::TensorState& state = state_of(*this, "requires_grad_");
  if (value) require_floating(*this, "requires_grad_");
  if (!is_leaf()) {
    if (value) return *this;
    throw AutogradError("requires_grad_: only leaves can stop requiring a gradient; use detach()");
  }
  if (value == requires_grad()) return *this;
  if (value) {
    // A record of its own: views that were made before have nothing to do with it, as in PyTorch.
    const autograd::History* before = autograd::history_of(*this);
    auto history = make_ref<autograd::History>(state.geometry);
    history->leaf_requires_grad = true;
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

void Tensor::set_data(const Tensor& other) const {
  graph::TensorState& state = state_of(*this, "set_data");
  const graph::TensorState& source = state_of(other, "set_data");
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
  ++history->generation;  // entries of views are of the data before
  if (!is_alike && history->gradient) history->gradient->set({});
}

}  // namespace russet
