#include "autograd/history.h"

#include "autograd/storage.h"

#include "autograd/tape.h"

namespace russet::autograd {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

/// Reading a view: the gradient goes back into its place in what is viewed, the root or another view.
class ViewFunction final : public Function {
 public:
  ViewFunction(Edge viewed, graph::Geometry place, graph::Geometry view, std::int64_t cell_numel)
      : Function({std::move(viewed)}), place_(std::move(place)), view_(std::move(view)), numel_(cell_numel) {}

  std::vector<Tensor> gradients(const Tensor& gradient) override {
    return {scatter_to_root(gradient, place_, view_, numel_)};
  }
  std::string_view name() const override { return "view"; }

  /// Keeps the view's gradient of the coming backward passes.
  void retain() {
    if (!kept_gradient()) keep_gradient(make_ref<KeptGradient>());
  }

 private:
  graph::Geometry place_;
  graph::Geometry view_;
  std::int64_t numel_;
};

/// Whether the view's entry of the tape belongs to the present value.
bool has_entry(const graph::TensorState& view, const History& history) {
  return view.view_entry && view.view_generation == history.generation;
}

/// What the gradient of a view goes to: the view that it was made from, where elements of that are apart and no
/// in-place write came since; else nullptr, for the root.
graph::TensorState* viewed_view(const graph::TensorState& view, const History& history) {
  graph::TensorState* parent = view.parent.get();
  if (!parent || view.parent_generation != history.generation) return nullptr;
  if (parent->root || parent->geometry == history.root || !graph::is_non_overlapping(parent->geometry)) return nullptr;
  return parent;
}

/// The entries of a view and of the views that it was made from, the outermost first.
Ref<ViewFunction> view_function(graph::TensorState& view, History& history) {
  const std::lock_guard lock(history.views);
  std::vector<graph::TensorState*> chain;
  for (graph::TensorState* state = &view; state && !has_entry(*state, history); state = viewed_view(*state, history)) {
    chain.push_back(state);
  }
  for (; !chain.empty(); chain.pop_back()) {
    graph::TensorState& state = *chain.back();
    const graph::TensorState* parent = viewed_view(state, history);
    Edge viewed;
    if (parent) {
      viewed.function = Ref<Function>(static_cast<Function*>(parent->view_entry.get()));
    } else if (history.function) {
      viewed.function = history.function;
    } else {
      viewed.leaf = Ref<History>(&history);
    }
    state.view_entry = make_ref<ViewFunction>(std::move(viewed), parent ? parent->geometry : history.root,
                                              state.geometry, state.cell->numel());
    state.view_generation = history.generation;
  }
  return Ref<ViewFunction>(static_cast<ViewFunction*>(view.view_entry.get()));
}

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

Ref<KeptGradient> Function::kept_gradient() const {
  const std::lock_guard lock(lock_);
  return kept_;
}

void Function::keep_gradient(Ref<KeptGradient> kept) {
  const std::lock_guard lock(lock_);
  std::swap(kept_, kept);
}

Tensor KeptGradient::get() const {
  const std::lock_guard lock(mutex_);
  return has_failed(gradient_) ? Tensor() : gradient_;
}

void KeptGradient::set(Tensor gradient) {
  const std::lock_guard lock(mutex_);
  std::swap(gradient_, gradient);
}

void KeptGradient::update(base::FunctionRef<Tensor(const Tensor& present)> update) {
  const std::lock_guard lock(mutex_);
  gradient_ = update(has_failed(gradient_) ? Tensor() : gradient_);
}

bool has_failed(const Tensor& gradient) { return gradient.defined() && gradient.state()->cell->value()->failed(); }

History::~History() {
  if (function && gradient) function->keep_gradient(nullptr);
}

void History::rebase(Ref<Function> entry) {
  if (function && gradient) function->keep_gradient(nullptr);
  function = std::move(entry);
  if (function && gradient) function->keep_gradient(gradient);
  ++generation;
}

History* history_of(const Tensor& tensor) { return static_cast<History*>(tensor.state()->history.get()); }

Ref<History> require_history(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  if (!state.history.get()) state.history.offer(make_ref<History>(state.geometry));
  return Ref<History>(history_of(tensor));
}

Edge edge_of(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  History* history = history_of(tensor);
  if (!history || !history->requires_grad()) return {};
  if (!state.root && state.geometry != history->root) {
    return {view_function(state, *history), nullptr};
  }
  if (history->function) return {history->function, nullptr};
  return {nullptr, Ref<History>(history)};
}

void retain_gradient(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  const Ref<History> history = require_history(tensor);
  if (!state.root && state.geometry != history->root) {
    view_function(state, *history)->retain();
    return;
  }
  if (!history->gradient) history->gradient = make_ref<KeptGradient>();
  if (history->function) history->function->keep_gradient(history->gradient);
}

Tensor gradient_of(const Tensor& tensor) {
  const graph::TensorState& state = *tensor.state();
  History* const history = history_of(tensor);
  if (!history) return {};
  if (state.root) return history->gradient ? history->gradient->get() : Tensor();
  Ref<KeptGradient> kept;
  {
    const std::lock_guard lock(history->views);
    if (has_entry(state, *history)) kept = static_cast<const Function&>(*state.view_entry).kept_gradient();
  }
  return kept ? kept->get() : Tensor();
}

Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge) {
  Tensor tensor = graph::wrap(value, geometry);
  if (!edge || !is_grad_enabled()) return tensor;
  if (edge.leaf && edge.leaf->root == tensor.state()->geometry) {
    tensor.state()->history.replace(edge.leaf);
  } else if (edge.leaf) {
    // The leaf lies in its cell in another way than this value does: views of the one are no views of the other.
    require_history(tensor)->function = make_ref<PassFunction>(edge);
  } else {
    require_history(tensor)->function = edge.function;
  }
  return tensor;
}

}  // namespace russet::autograd
