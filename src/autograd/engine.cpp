// Backward passes: gradients flow from the results to the leaves, the latest entry of the tape first.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <unordered_map>

#include "autograd/history.h"
#include "autograd/tape.h"
#include "graph/axis_order.h"
#include "graph/recorder.h"

namespace russet {
namespace {

thread_local bool grad_enabled = true;

}  // namespace

bool is_grad_enabled() { return grad_enabled; }
SetGrad::SetGrad(bool enabled) : before_(grad_enabled) { grad_enabled = enabled; }
SetGrad::~SetGrad() { grad_enabled = before_; }
NoGrad::NoGrad() : before_(grad_enabled) { grad_enabled = false; }
NoGrad::~NoGrad() { grad_enabled = before_; }

namespace autograd {
namespace {

struct Mode {
  bool retain_graph = false;
  bool create_graph = false;
};

Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? apply(ops::Op::add, {a, b}) : b; }

/// A copy outside the tape, with its axes in memory as `leaf` has them, if that is dense; else row-major.
Tensor laid_out_as(const graph::Geometry& leaf, const Tensor& gradient) {
  if (graph::is_contiguous(leaf) || !graph::is_dense(leaf)) return graph::wrap(graph::value_of(gradient));
  const graph::Geometry ordered = graph::reordered(gradient.state()->geometry, graph::memory_order(leaf.strides));
  return graph::wrap(graph::value_of(gradient, ordered), {leaf.sizes, leaf.strides, 0});
}

Tensor own_tensor(const Tensor& gradient) {
  graph::Image image = graph::image_of(gradient);
  return graph::wrap(std::move(image.node), std::move(image.geometry));
}

/// Where gradients that the caller asked for are kept, by tape entry or leaf.
using Wanted = std::unordered_map<const void*, Tensor>;

/// The entries of the tape through which gradients reach what is wanted.
class Leading {
 public:
  Leading(const std::vector<Edge>& starts, const Wanted& wanted) {
    std::vector<const Function*> reached;
    for (const Edge& start : starts) reach(start, reached);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const Edge& input : reached[i]->inputs()) reach(input, reached);
    }
    // Inputs first: an entry leads if it is wanted or an input leads.
    std::sort(reached.begin(), reached.end(),
              [](const Function* a, const Function* b) { return a->sequence() < b->sequence(); });
    for (const Function* function : reached) {
      bool& leads = leads_[function];
      leads = wanted.contains(function);
      for (const Edge& input : function->inputs()) {
        leads = leads || (input.leaf && wanted.contains(input.leaf.get())) ||
                (input.function && leads_.at(input.function.get()));
      }
    }
  }
  bool operator()(const Function* function) const { return leads_.at(function); }

 private:
  void reach(const Edge& edge, std::vector<const Function*>& reached) {
    if (edge.function && leads_.emplace(edge.function.get(), false).second) reached.push_back(edge.function.get());
  }
  std::unordered_map<const Function*, bool> leads_;
};

class Pass {
 public:
  /// `leading`: entries that do not lead to what is wanted are left out; nullptr if there are none.
  Pass(Mode mode, Wanted* wanted, const Leading* leading) : mode_(mode), wanted_(wanted), leading_(leading) {}
  ~Pass() {
    for (const Ref<Function>& function : heap_) function->incoming = {};
  }

  void send(const Edge& edge, const Tensor& gradient) {
    if (edge.leaf) {
      arrive(*edge.leaf, gradient);
    } else if (edge.function && (!leading_ || (*leading_)(edge.function.get()))) {
      if (!edge.function->incoming.defined()) {
        heap_.push_back(edge.function);
        std::push_heap(heap_.begin(), heap_.end(), earlier);
      }
      edge.function->incoming = plus(edge.function->incoming, gradient);
    }
  }

  void run() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), earlier);
      const Ref<Function> function = std::move(heap_.back());
      heap_.pop_back();
      const Tensor gradient = std::exchange(function->incoming, {});
      if (wanted_) {
        const auto found = wanted_->find(function.get());
        if (found != wanted_->end()) found->second = gradient;
      }
      if (function->retained_by) function->retained_by->grad = plus(function->retained_by->grad, gradient.detach());
      const std::vector<Tensor> gradients = function->gradients(gradient);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].defined()) send(function->inputs()[i], gradients[i]);
      }
      if (!mode_.retain_graph) function->release();
    }
  }

 private:
  static bool earlier(const Ref<Function>& a, const Ref<Function>& b) { return a->sequence() < b->sequence(); }

  void arrive(History& leaf, const Tensor& gradient) {
    if (wanted_) {
      const auto found = wanted_->find(&leaf);
      if (found != wanted_->end()) found->second = plus(found->second, gradient);
      return;
    }
    if (mode_.create_graph) {
      leaf.grad = plus(leaf.grad, gradient);
    } else if (!leaf.grad.defined()) {
      leaf.grad = laid_out_as(leaf.root, gradient);
    } else {
      const Tensor sum = apply(ops::Op::add, {leaf.grad, gradient});
      leaf.grad.state()->history = nullptr;
      assign(leaf.grad, sum);
    }
  }

  Mode mode_;
  Wanted* wanted_;
  const Leading* leading_;
  std::vector<Ref<Function>> heap_;
};

Tensor ones_like(const Tensor& output) {
  if (output.numel() != 1) {
    throw AutogradError(fmt::format(
        "backward: a gradient can be left out only for a tensor of one element; this one has shape {}. Pass the "
        "gradient, or reduce the tensor.",
        to_string(output.sizes())));
  }
  return graph::wrap(graph::constant(1, output.dtype(), output.device(), output.sizes()));
}

Tensor checked_gradient(const Tensor& output, const Tensor& gradient) {
  if (!gradient.defined()) return ones_like(output);
  if (gradient.sizes() != output.sizes()) {
    throw ShapeError(fmt::format("backward: the gradient has shape {}, the tensor {}", to_string(gradient.sizes()),
                                 to_string(output.sizes())));
  }
  if (gradient.dtype() != output.dtype()) {
    throw TypeError(fmt::format("backward: the gradient has type {}, the tensor {}", name_of(gradient.dtype()),
                                name_of(output.dtype())));
  }
  return gradient;
}

void run(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, Mode mode, Wanted* wanted) {
  std::vector<std::pair<Edge, Tensor>> starts;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Edge edge = edge_of(outputs[i]);
    if (!edge) {
      throw AutogradError(
          "backward: the tensor does not require a gradient: no tensor it was computed from does, or it was computed "
          "under NoGrad");
    }
    starts.emplace_back(std::move(edge), checked_gradient(outputs[i], i < gradients.size() ? gradients[i] : Tensor()));
  }
  const SetGrad grad_mode(mode.create_graph);
  std::vector<Edge> edges;
  for (const auto& [edge, gradient] : starts) edges.push_back(edge);
  std::optional<Leading> leading;
  if (wanted) leading.emplace(edges, *wanted);
  Pass pass(mode, wanted, leading ? &*leading : nullptr);
  for (const auto& [edge, gradient] : starts) pass.send(edge, gradient);
  pass.run();
}

const void* key_of(const Edge& edge) {
  return edge.leaf ? static_cast<const void*>(edge.leaf.get()) : edge.function.get();
}

}  // namespace

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients, const GradOptions& options) {
  Wanted wanted;
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) {
    edges.push_back(edge_of(input));
    if (!edges.back()) throw AutogradError("grad: an input does not require a gradient");
    wanted.emplace(key_of(edges.back()), Tensor());
  }
  run(outputs, gradients, {options.retain_graph.value_or(options.create_graph), options.create_graph}, &wanted);
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& found = wanted.at(key_of(edges[i]));
    if (!found.defined() && !options.allow_unused) {
      throw AutogradError(fmt::format(
          "grad: input {} was not used to compute the outputs. Pass allow_unused = true if that is meant.", i));
    }
    // A tensor of its own: writing to it must not reach another gradient.
    result.push_back(found.defined() && !options.create_graph ? own_tensor(found) : found);
  }
  return result;
}

}  // namespace autograd

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  autograd::run({*this}, {gradient}, {retain_graph || create_graph, create_graph}, nullptr);
  graph::mark();
}

bool Tensor::requires_grad() const {
  const autograd::History* history = state_ ? autograd::history_of(*this) : nullptr;
  return history && history->requires_grad();
}

bool Tensor::is_leaf() const {
  const autograd::History* history = autograd::history_of(*this);
  if (!history || !history->requires_grad()) return true;
  return !history->function && state_->root;
}

Tensor& Tensor::requires_grad_(bool value) {
  if (value && !is_floating(dtype())) {
    throw TypeError(
        fmt::format("requires_grad_: only floating tensors can require a gradient, not {}", name_of(dtype())));
  }
  if (!is_leaf()) {
    if (value) return *this;
    throw AutogradError("requires_grad_: only leaves can stop requiring a gradient; use detach()");
  }
  if (!state_->root) {
    state_->history = make_ref<autograd::History>(state_->geometry);
    state_->root = true;
  }
  const Ref<autograd::History> history = autograd::require_history(*this);
  history->leaf_requires_grad = value;
  return *this;
}

Tensor Tensor::grad() const { return autograd::gradient_of(*this); }

void Tensor::set_grad(const Tensor& gradient) const { autograd::require_history(*this)->grad = gradient; }

Tensor Tensor::detach() const {
  return Tensor(make_ref<graph::TensorState>(state_->cell, state_->geometry, nullptr, true));
}

void Tensor::retain_grad() const {
  if (!is_leaf()) autograd::retain_gradient(*this);
}

}  // namespace russet
