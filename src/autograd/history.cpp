#include "autograd/history.h"

#include "autograd/storage.h"

#include "autograd/tape.h"
#include "base/pool.h"
#include "graph/capture.h"
#include "graph/checkpoint.h"

namespace russet::autograd {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

/// Reading a view: the gradient goes back into its place in what is viewed, the root or another view.
class ViewEntry final : public TapeEntry {
 public:
  ViewEntry(Edge viewed, graph::Geometry place, graph::Geometry view, std::int64_t cell_numel)
      : TapeEntry({std::move(viewed)}), place_(std::move(place)), view_(std::move(view)), numel_(cell_numel) {}

  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override {
    if (view_ == place_) return {arrived[0]};
    return {scatter_to_root(arrived[0], place_, view_, numel_)};
  }
  std::string_view name() const override { return "view"; }

 private:
  graph::Geometry place_;
  graph::Geometry view_;
  std::int64_t numel_;
};

/// Whether the view has an entry of the tape, for the present value. For holders of the history's mutex.
bool has_entry(const graph::TensorState& view, const History& history) {
  return view.view_entry && view.view_generation == history.generation;
}

bool has_entry_now(const graph::TensorState& view, History& history) {
  const std::lock_guard lock(history.mutex);
  return has_entry(view, history);
}

/// What the gradient of a view goes to: the view that it was made from, where elements of that are apart and no
/// in-place write came since; else nullptr, for the root.
graph::TensorState* viewed_view(const graph::TensorState& view, const History& history) {
  graph::TensorState* parent = view.parent.get();
  if (!parent || view.parent_generation != history.generation) return nullptr;
  if (parent->root || !graph::is_non_overlapping(parent->geometry)) return nullptr;
  return parent->geometry == history.root && !has_entry(*parent, history) ? nullptr : parent;
}

/// The entries of a view and of the views that it was made from, the outermost first.
Ref<ViewEntry> entry_of_view(graph::TensorState& view, History& history) {
  const std::lock_guard lock(history.mutex);
  std::vector<graph::TensorState*> chain;
  for (graph::TensorState* state = &view; state && !has_entry(*state, history); state = viewed_view(*state, history)) {
    chain.push_back(state);
  }
  for (; !chain.empty(); chain.pop_back()) {
    graph::TensorState& state = *chain.back();
    const graph::TensorState* parent = viewed_view(state, history);
    Edge viewed = history.edge();
    if (parent) viewed = {Ref<TapeEntry>(static_cast<TapeEntry*>(parent->view_entry.get())), nullptr};
    state.view_entry = make_ref<ViewEntry>(std::move(viewed), parent ? parent->geometry : history.root, state.geometry,
                                           state.cell->numel());
    state.view_generation = history.generation;
  }
  return Ref<ViewEntry>(static_cast<ViewEntry*>(view.view_entry.get()));
}

/// Hands the gradient on as it is.
class PassEntry final : public TapeEntry {
 public:
  explicit PassEntry(Edge to) : TapeEntry({std::move(to)}) {}
  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override { return {arrived[0]}; }
  std::string_view name() const override { return "pass"; }
};

}  // namespace

TapeEntry::TapeEntry(std::vector<Edge> inputs)
    : inputs_(std::move(inputs)), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

// A long tape is taken apart in a loop, as nodes are.
TapeEntry::~TapeEntry() {
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

std::vector<ResultWatch> TapeEntry::watches() const {
  const std::lock_guard lock(lock_);
  return watches_ ? *watches_ : std::vector<ResultWatch>();
}

/// While the caller holds lock_.
ResultWatch& TapeEntry::watch(std::uint32_t result) {
  if (!watches_) watches_ = std::make_unique<std::vector<ResultWatch>>();
  for (ResultWatch& watch : *watches_) {
    if (watch.result == result) return watch;
  }
  ResultWatch& made = watches_->emplace_back();
  made.result = result;
  return made;
}

GradientHooks TapeEntry::hooks(std::uint32_t result) {
  const std::lock_guard lock(lock_);
  return watch(result).hooks;
}

Ref<KeptGradient> TapeEntry::kept_gradient(std::uint32_t result) const {
  for (const ResultWatch& watch : watches()) {
    if (watch.result == result) return watch.kept;
  }
  return nullptr;
}

void TapeEntry::keep_gradient(std::uint32_t result, Ref<KeptGradient> kept) {
  const std::lock_guard lock(lock_);
  std::swap(watch(result).kept, kept);
}

namespace {

std::atomic<std::int64_t> leaves_with_hooks{0};

}  // namespace

LeafHooks::LeafHooks(Ref<graph::Cell> cell) : cell(std::move(cell)) { ++leaves_with_hooks; }
LeafHooks::~LeafHooks() { --leaves_with_hooks; }
bool LeafHooks::exist() { return leaves_with_hooks.load(std::memory_order_relaxed) > 0; }

namespace {

void note_gradient(const Tensor& gradient) {
  graph::Capture* const capture = graph::Capture::current();
  if (capture && gradient.defined()) capture->note_gradient(*gradient.state()->cell);
}

}  // namespace

Tensor KeptGradient::get() const {
  const std::lock_guard lock(mutex_);
  return has_failed(gradient_) ? Tensor() : gradient_;
}

void KeptGradient::set(Tensor gradient) {
  const std::lock_guard lock(mutex_);
  std::swap(gradient_, gradient);
  note_gradient(gradient_);
  const bool is_captured = gradient.defined() && gradient.state()->cell->is_captured_gradient();
  if (is_captured && !graph::Capture::current()) graph::note_changed_setting();
}

void KeptGradient::update(base::FunctionRef<Tensor(const Tensor& present)> update) {
  const std::lock_guard lock(mutex_);
  gradient_ = update(has_failed(gradient_) ? Tensor() : gradient_);
  note_gradient(gradient_);
}

bool has_failed(const Tensor& gradient) { return gradient.defined() && gradient.state()->cell->value()->failed(); }

void* History::operator new(std::size_t) { return base::ObjectPool<History>::allocate(); }
void History::operator delete(void* memory, std::size_t) { base::ObjectPool<History>::release(memory); }

History::~History() {
  if (entry && gradient) entry->keep_gradient(result, nullptr);
}

Edge History::edge() {
  if (entry) return {entry, nullptr, result};
  return {nullptr, Ref<History>(this)};
}

// Hooks stay with the value that they were registered for; what is retained is the gradient of the value now.
void History::rebase(const Edge& made_by) {
  if (entry && gradient) entry->keep_gradient(result, nullptr);
  entry = made_by.entry;
  result = made_by.result;
  if (entry && gradient) entry->keep_gradient(result, gradient);
  ++generation;
}

std::shared_ptr<LeafHooks> History::leaf_hooks() {
  const std::lock_guard lock(mutex);
  return leaf_hooks_;
}

void History::set_leaf_hooks(std::shared_ptr<LeafHooks> hooks) {
  const std::lock_guard lock(mutex);
  std::swap(leaf_hooks_, hooks);
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
  if (!state.root && (state.geometry != history->root || has_entry_now(state, *history))) {
    return {entry_of_view(state, *history), nullptr};
  }
  return history->edge();
}

Edge own_edge_of(const Tensor& tensor) {
  graph::TensorState& state = *tensor.state();
  History* history = history_of(tensor);
  if (!history || !history->requires_grad()) return {};
  if (!state.root) return {entry_of_view(state, *history), nullptr};
  return history->edge();
}

void retain_gradient(const Tensor& tensor) {
  const Ref<History> history = require_history(tensor);
  if (!tensor.state()->root) {
    const Ref<ViewEntry> view = entry_of_view(*tensor.state(), *history);
    if (!view->kept_gradient()) view->keep_gradient(0, make_ref<KeptGradient>());
    return;
  }
  if (!history->gradient) history->gradient = make_ref<KeptGradient>();
  if (history->entry) history->entry->keep_gradient(history->result, history->gradient);
}

Tensor gradient_of(const Tensor& tensor) {
  const graph::TensorState& state = *tensor.state();
  History* const history = history_of(tensor);
  if (!history) return {};
  if (state.root) return history->gradient ? history->gradient->get() : Tensor();
  Ref<KeptGradient> kept;
  {
    const std::lock_guard lock(history->mutex);
    if (has_entry(state, *history)) kept = static_cast<const TapeEntry&>(*state.view_entry).kept_gradient();
  }
  return kept ? kept->get() : Tensor();
}

Tensor connected(const graph::NodeRef& value, const graph::Geometry& geometry, const Edge& edge) {
  Tensor tensor = graph::wrap(graph::computed_again(value), geometry);
  if (!edge || !is_grad_enabled()) return tensor;
  if (edge.leaf && edge.leaf->root == tensor.state()->geometry) {
    tensor.state()->history.replace(edge.leaf);
  } else if (edge.leaf) {
    // This value's geometry differs from the leaf's, so views of it cannot be expressed as views of the leaf.
    require_history(tensor)->entry = make_ref<PassEntry>(edge);
  } else {
    const Ref<History> history = require_history(tensor);
    history->entry = edge.entry;
    history->result = edge.result;
  }
  return tensor;
}

}  // namespace russet::autograd
