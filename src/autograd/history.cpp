#include "autograd/history.h"

#include "autograd/storage.h"

#include "autograd/tape.h"

namespace russet::autograd {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

/// Reading a view: the gradient goes back into its place in the root.
class ViewFunction final : public Function {
 public:
  ViewFunction(Edge base, graph::Geometry root, graph::Geometry view, std::int64_t cell_numel, DType dtype)
      : Function({std::move(base)}),
        root_(std::move(root)),
        view_(std::move(view)),
        numel_(cell_numel),
        dtype_(dtype) {}

  std::vector<Tensor> gradients(const Tensor& gradient) override {
    return {scatter_to_root(gradient, root_, view_, numel_)};
  }
  std::string_view name() const override { return "view"; }

 private:
  graph::Geometry root_;
  graph::Geometry view_;
  std::int64_t numel_;
  DType dtype_;
};

/// Hands the gradient on as it is.
class PassFunction final : public Function {
 public:
  explicit PassFunction(Edge to) : Function({std::move(to)}) {}
  std::vector<Tensor> gradients(const Tensor& gradient) override { return {gradient}; }
  std::string_view name() const override { return "pass"; }
};

}  // namespace

Function::Function(std::vector<Edge> inputs)
    : inputs_(std::move(inputs)), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

// A long tape is taken apart in a loop, as nodes are.
Function::~Function() {
  static thread_local std::vector<Edge>* doomed = nullptr;
  if (doomed) {
    for (Edge& edge : inputs_) doomed->push_back(std::move(edge));
    return;
  }
  std::vector<Edge> queue = std::move(inputs_);
  doomed = &queue;
  while (!queue.empty()) {
    const Edge last = std::move(queue.back());
    queue.pop_back();
  }
  doomed = nullptr;
}

History::~History() {
  if (function && function->retained_by == this) function->retained_by = nullptr;
}

void History::rebase(Ref<Function> entry) {
  if (function && function->retained_by == this) function->retained_by = nullptr;
  function = std::move(entry);
  if (function && retains_grad) function->retained_by = this;
  ++generation;
}

History* history_of(const Tensor& tensor) { return static_cast<History*>(tensor.state()->history.get()); }

Ref<History> require_history(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  if (!state.history) state.history = make_ref<History>(state.geometry);
  return Ref<History>(static_cast<History*>(state.history.get()));
}

Edge edge_of(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  History* history = history_of(tensor);
  if (!history || !history->requires_grad()) return {};
  Edge base;
  if (history->function) {
    base.function = history->function;
  } else {
    base.leaf = Ref<History>(history);
  }
  if (state.root || state.geometry == history->root) return base;
  if (!state.view_entry || state.view_generation != history->generation) {
    state.view_entry = make_ref<ViewFunction>(std::move(base), history->root, state.geometry, state.cell->numel(),
                                              state.cell->value()->dtype);
    state.view_generation = history->generation;
  }
  return {Ref<Function>(static_cast<Function*>(state.view_entry.get())), nullptr};
}

Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge) {
  Tensor tensor = graph::wrap(value, geometry);
  if (!edge || !is_grad_enabled()) return tensor;
  if (edge.leaf && edge.leaf->root == tensor.state()->geometry) {
    tensor.state()->history = edge.leaf;
  } else if (edge.leaf) {
    // The leaf lies in its cell in another way than this value does: views of the one are no views of the other.
    require_history(tensor)->function = make_ref<PassFunction>(edge);
  } else {
    require_history(tensor)->function = edge.function;
  }
  return tensor;
}

}  // namespace russet::autograd
