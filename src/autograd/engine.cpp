// Backward passes: gradients flow from the results to the leaves, the latest entry of the tape first.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <unordered_map>

#include "autograd/history.h"
#include "autograd/tape.h"
#include "base/lender.h"
#include "base/numbering.h"
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

/// Gradients on their way. They belong to a pass: threads may walk one tape side by side.
struct Underway {
  struct Arrived {
    Ref<Function> function;  // until it runs
    Tensor gradient;         // what has arrived so far
  };
  base::Numbering<Function> numbers;
  std::vector<Arrived> arrived;                              // by number
  std::vector<std::pair<std::uint64_t, std::int32_t>> heap;  // sequence and number of what has not run
};

base::Lender<Underway>& scratch() {
  static auto* const lender = new base::Lender<Underway>;
  return *lender;
}

/// One backward pass.
class Pass {
 public:
  /// `leading`: entries that do not lead to what is wanted are left out; nullptr if there are none.
  Pass(Mode mode, Wanted* wanted, const Leading* leading)
      : mode_(mode), wanted_(wanted), leading_(leading), underway_(scratch()) {}
  ~Pass() {
    underway_->numbers.clear();
    underway_->arrived.clear();
    underway_->heap.clear();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void send(const Edge& edge, const Tensor& gradient) {
    if (edge.leaf) {
      arrive(*edge.leaf, gradient);
    } else if (edge.function && (!leading_ || (*leading_)(edge.function.get()))) {
      const std::int32_t number = underway_->numbers.number_of(edge.function.get());
      if (static_cast<std::size_t>(number) == underway_->arrived.size()) underway_->arrived.emplace_back();
      Underway::Arrived& arrived = underway_->arrived[static_cast<std::size_t>(number)];
      if (!arrived.function) {
        arrived.function = edge.function;
        underway_->heap.emplace_back(edge.function->sequence(), number);
        std::push_heap(underway_->heap.begin(), underway_->heap.end());
      }
      arrived.gradient = plus(arrived.gradient, gradient);
    }
  }

  void run() {
    auto& heap = underway_->heap;
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      Underway::Arrived& next = underway_->arrived[static_cast<std::size_t>(heap.back().second)];
      heap.pop_back();
      const Ref<Function> function = std::move(next.function);
      const Tensor gradient = std::exchange(next.gradient, {});
      if (wanted_) {
        const auto found = wanted_->find(function.get());
        if (found != wanted_->end()) found->second = gradient;
      }
      if (const Ref<KeptGradient> kept = function->kept_gradient()) {
        kept->update([&](const Tensor& present) { return plus(present, gradient.detach()); });
      }
      const std::vector<Tensor> gradients = function->gradients(gradient);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].defined()) send(function->inputs()[i], gradients[i]);
      }
      if (!mode_.retain_graph) function->release();
    }
  }

 private:
  void arrive(History& leaf, const Tensor& gradient) {
    if (wanted_) {
      const auto found = wanted_->find(&leaf);
      if (found != wanted_->end()) found->second = plus(found->second, gradient);
      return;
    }
    leaf.gradient->update([&](const Tensor& present) {
      if (mode_.create_graph) return plus(present, gradient);
      if (!present.defined()) return laid_out_as(leaf.root, gradient);
      const Tensor sum = apply(ops::Op::add, {present, gradient});
      present.state()->history.replace(nullptr);
      assign(present, sum);
      return present;
    });
  }

  Mode mode_;
  Wanted* wanted_;
  const Leading* leading_;
  base::Lender<Underway>::Loan underway_;
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
  std::vector<std::pair<Edge, Tensor>> starts;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require_defined(outputs[i], "backward: output", i);
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
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_defined(inputs[i], "grad: input", i);
    edges.push_back(edge_of(inputs[i]));
    if (!edges.back()) throw AutogradError(fmt::format("grad: input {} does not require a gradient", i));
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

void backward(const Tensor& output, const Tensor& gradient, bool retain_graph, bool create_graph) {
  run({output}, {gradient}, {retain_graph || create_graph, create_graph}, nullptr);
  graph::mark();
}

}  // namespace autograd
}  // namespace russet
