// Backward passes: gradients flow from the results to the leaves, the latest entry of the tape first.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <utility>

#include "autograd/history.h"
#include "autograd/reach.h"
#include "autograd/tape.h"
#include "base/lender.h"
#include "base/numbering.h"
#include "graph/axis_order.h"
#include "graph/checkpoint.h"
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

thread_local bool differentiating = false;

/// A backward pass of this thread, while one lives; passes may lie within each other.
class Differentiating {
 public:
  Differentiating() : before_(std::exchange(differentiating, true)) {}
  ~Differentiating() { differentiating = before_; }
  Differentiating(const Differentiating&) = delete;
  Differentiating& operator=(const Differentiating&) = delete;

 private:
  bool before_;
};

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
  graph::PackedTensor packed = graph::packed(gradient);
  return graph::wrap(std::move(packed.node), std::move(packed.geometry));
}

/// What a pass has changed, to be changed back if it fails.
struct Change {
  Ref<KeptGradient> kept;
  Tensor before;
  graph::NodeRef value_before;
  graph::NodeRef value_after;

  void undo() const {
    kept->update([this](const Tensor& present) {
      // Another pass has added to it since: its gradient stays.
      if (!present.defined() || present.state()->cell->value() != value_after) return present;
      if (before.defined() && before.state()->cell->value() != value_before) {
        graph::write_cell(*before.state()->cell, value_before);
      }
      return before;
    });
  }
};

/// Gradients on their way. They belong to a pass: threads may walk one tape side by side.
struct Underway {
  struct Arrived {
    Ref<TapeEntry> entry;               // until it runs
    Tensor gradient;                    // of result 0: what has arrived so far
    std::vector<Tensor> other_results;  // of result 1 and those after it
    Tensor& of_result(std::uint32_t result) {
      if (result == 0) return gradient;
      if (other_results.size() < result) other_results.resize(result);
      return other_results[result - 1];
    }
  };
  base::Numbering<TapeEntry> numbers;
  std::vector<Arrived> arrived;                              // by number
  std::vector<std::pair<std::uint64_t, std::int32_t>> heap;  // sequence and number of what has not run
  std::vector<Ref<TapeEntry>> done;
  std::vector<Change> changes;
};

base::Lender<Underway>& scratch() {
  static auto* const lender = new base::Lender<Underway>;
  return *lender;
}

/// What a hook makes of a gradient.
Tensor after_hook(const GradientHooks::Hook& hook, const Tensor& gradient) {
  Tensor replaced = hook(gradient);
  if (!replaced.defined()) return gradient;
  const auto refuse = [](const char* what, const std::string& got, const std::string& wanted) {
    throw AutogradError(fmt::format("register_hook: the hook has changed the gradient's {}: it returned {}, not {}",
                                    what, got, wanted));
  };
  if (replaced.sizes() != gradient.sizes()) {
    refuse("shape", to_string(replaced.sizes()), to_string(gradient.sizes()));
  }
  if (replaced.dtype() != gradient.dtype()) {
    refuse("type", std::string(name_of(replaced.dtype())), std::string(name_of(gradient.dtype())));
  }
  if (!(replaced.device() == gradient.device())) {
    refuse("device", to_string(replaced.device()), to_string(gradient.device()));
  }
  return replaced;
}

/// One backward pass. If it throws, hooks and rules included, nothing is freed and gradients are what they were, except
/// those that a post-accumulate hook has seen and those that another pass has added to since.
class Pass {
 public:
  /// `leading`: entries that do not lead to what is wanted are left out; nullptr if there are none.
  Pass(Mode mode, Wanted* wanted, const Leading* leading)
      : mode_(mode), wanted_(wanted), leading_(leading), underway_(scratch()) {}
  ~Pass() {
    underway_->numbers.clear();
    underway_->arrived.clear();
    underway_->heap.clear();
    underway_->done.clear();
    underway_->changes.clear();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void run(std::span<const Edge> starts, std::span<const Tensor> gradients) {
    if (LeafHooks::exist()) hooked_leaves_.find(starts, leading_);
    try {
      for (std::size_t i = 0; i < starts.size(); ++i) send(starts[i], gradients[i]);
      walk();
      // Entries that nothing reached have counted as if they might bring some.
      for (HookedLeaves::Arriving& leaf : hooked_leaves_.all()) complete(leaf);
    } catch (...) {
      for (auto change = underway_->changes.rbegin(); change != underway_->changes.rend(); ++change) change->undo();
      throw;
    }
    if (mode_.retain_graph) return;
    for (const Ref<TapeEntry>& entry : underway_->done) entry->release();
  }

 private:
  /// An undefined gradient is zero.
  void send(const Edge& edge, const Tensor& gradient) {
    if (HookedLeaves::Arriving* leaf = hooked_leaves_.at(edge)) {
      if (gradient.defined()) leaf->gradient = plus(leaf->gradient, gradient);
      if (--leaf->edges_left == 0) complete(*leaf);
    } else if (!gradient.defined()) {
      return;
    } else if (edge.leaf) {
      arrive(*edge.leaf, gradient);
    } else if (edge.entry && (!leading_ || leading_->leads(edge.entry.get()))) {
      const std::int32_t number = underway_->numbers.number_of(edge.entry.get());
      if (static_cast<std::size_t>(number) == underway_->arrived.size()) underway_->arrived.emplace_back();
      Underway::Arrived& arrived = underway_->arrived[static_cast<std::size_t>(number)];
      if (!arrived.entry) {
        arrived.entry = edge.entry;
        underway_->heap.emplace_back(edge.entry->sequence(), number);
        std::push_heap(underway_->heap.begin(), underway_->heap.end());
      }
      Tensor& sum = arrived.of_result(edge.result);
      sum = plus(sum, gradient);
    }
  }

  void walk() {
    auto& heap = underway_->heap;
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      Underway::Arrived& next = underway_->arrived[static_cast<std::size_t>(heap.back().second)];
      heap.pop_back();
      Underway::Arrived arrived = std::exchange(next, {});
      watched(arrived);
      TapeEntry& entry = *arrived.entry;
      if (leading_ && !leading_->leads_on(&entry)) continue;
      const std::vector<Tensor> gradients = gradients_of(arrived);
      for (std::size_t i = 0; i < gradients.size(); ++i) send(entry.inputs()[i], gradients[i]);
      if (mode_.retain_graph) continue;
      entry.stop_saving();
      underway_->done.push_back(std::move(arrived.entry));
    }
  }

  static std::vector<Tensor> gradients_of(Underway::Arrived& arrived) {
    if (arrived.other_results.empty()) return arrived.entry->gradients({&arrived.gradient, 1});
    arrived.other_results.insert(arrived.other_results.begin(), arrived.gradient);
    return arrived.entry->gradients(arrived.other_results);
  }

  /// Hooks, then those who keep the gradients of results.
  void watched(Underway::Arrived& arrived) {
    for (const ResultWatch& watch : arrived.entry->watches()) {
      Tensor& gradient = arrived.of_result(watch.result);
      if (!gradient.defined()) continue;
      for (const auto& hook : watch.hooks.present()) gradient = after_hook(*hook, gradient);
      if (!watch.kept) continue;
      change(watch.kept, [&](const Tensor& present) { return plus(present, gradient.detach()); });
    }
    if (!wanted_) return;
    for (auto found = wanted_->lower_bound({arrived.entry.get(), 0});
         found != wanted_->end() && found->first.first == arrived.entry.get(); ++found) {
      found->second = arrived.of_result(found->first.second);
    }
  }

  /// Of a leaf with hooks: all of its gradient has arrived.
  void complete(HookedLeaves::Arriving& leaf) {
    Tensor gradient = std::exchange(leaf.gradient, {});
    if (!gradient.defined()) return;
    if (wanted_ && !wanted_->contains({leaf.leaf.get(), 0})) return;
    for (const auto& hook : leaf.hooks->gradient.present()) gradient = after_hook(*hook, gradient);
    arrive(*leaf.leaf, gradient);
    if (wanted_) return;
    const auto accumulated = leaf.hooks->accumulated.present();
    if (accumulated.empty()) return;
    std::erase_if(underway_->changes, [&](const Change& change) { return change.kept == leaf.leaf->gradient; });
    const Tensor handle(make_ref<graph::TensorState>(leaf.hooks->cell, leaf.leaf->root, leaf.leaf, true));
    for (const auto& hook : accumulated) (*hook)(handle);
  }

  void arrive(History& leaf, const Tensor& gradient) {
    if (wanted_) {
      const auto found = wanted_->find({&leaf, 0});
      if (found != wanted_->end()) found->second = plus(found->second, gradient);
      return;
    }
    change(leaf.gradient, [&](const Tensor& present) {
      if (mode_.create_graph) return plus(present, gradient);
      if (!present.defined()) return laid_out_as(leaf.root, gradient);
      const Tensor sum = apply(ops::Op::add, {present, gradient});
      present.state()->history.replace(nullptr);
      assign(present, sum);
      return present;
    });
  }

  void change(const Ref<KeptGradient>& kept, base::FunctionRef<Tensor(const Tensor& present)> make) {
    kept->update([&](const Tensor& present) {
      Change change{kept, present, present.defined() ? present.state()->cell->value() : nullptr, nullptr};
      Tensor made = make(present);
      change.value_after = made.state()->cell->value();
      underway_->changes.push_back(std::move(change));
      return made;
    });
  }

  Mode mode_;
  Wanted* wanted_;
  const Leading* leading_;
  HookedLeaves hooked_leaves_;
  base::Lender<Underway>::Loan underway_;
  graph::RecordedAgain recorded_again_;
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

void require_defined(const Tensor& tensor, const char* what, std::size_t number) {
  if (tensor.defined()) return;
  throw ValueError(
      fmt::format("{} {} is an undefined tensor: it was declared but nothing was assigned to it", what, number));
}

void run(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, Mode mode, Wanted* wanted) {
  std::vector<Edge> starts;
  std::vector<Tensor> arriving;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require_defined(outputs[i], "backward: output", i);
    starts.push_back(edge_of(outputs[i]));
    if (!starts.back()) {
      throw AutogradError(
          "backward: the tensor does not require a gradient: no tensor it was computed from does, or it was computed "
          "under NoGrad");
    }
    arriving.push_back(checked_gradient(outputs[i], i < gradients.size() ? gradients[i] : Tensor()));
  }
  const SetGrad grad_mode(mode.create_graph);
  const Differentiating pass;
  std::optional<Leading> leading;
  if (wanted) leading.emplace(starts, *wanted);
  Pass(mode, wanted, leading ? &*leading : nullptr).run(starts, arriving);
}

}  // namespace

bool is_differentiating() { return differentiating; }

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients, const GradOptions& options) {
  Wanted wanted;
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_defined(inputs[i], "grad: input", i);
    edges.push_back(edge_of(inputs[i]));
    if (!edges.back()) throw AutogradError(fmt::format("grad: input {} does not require a gradient", i));
    wanted.emplace(place_of(edges.back()), Tensor());
  }
  run(outputs, gradients, {options.retain_graph.value_or(options.create_graph), options.create_graph}, &wanted);
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& found = wanted.at(place_of(edges[i]));
    if (!found.defined() && !options.allow_unused) {
      throw AutogradError(fmt::format(
          "grad: input {} was not used to compute the outputs. Pass allow_unused = true if that is meant.", i));
    }
    // A tensor of its own: writing to it must not reach another gradient.
    result.push_back(found.defined() && !options.create_graph ? own_tensor(found) : found);
  }
  return result;
}

void backward(const Tensor& output, const Tensor& gradient, bool retain_graph, bool create_graph) {
  run({output}, {gradient}, {retain_graph || create_graph, create_graph}, nullptr);
  graph::mark();
}

}  // namespace autograd
}  // namespace russet
