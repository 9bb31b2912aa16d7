#include "autograd/tape.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "autograd/history.h"
#include "autograd/rules.h"
#include "autograd/saved_tensors.h"
#include "autograd/storage.h"
#include "base/pool.h"
#include "graph/axis_order.h"
#include "graph/recorder.h"
#include "ops/table.h"

namespace russet::autograd {
namespace {

using graph::NodeRef;
using ops::Op;

/// What tests ask about rules.
struct Probe {
  bool active = false;
  std::string flipped;
  std::set<std::string, std::less<>>* names = nullptr;
};
Probe& probe() {
  static Probe asked;
  return asked;
}

void answer_probe(std::string_view rule, std::vector<Tensor>& gradients) {
  if (probe().names) probe().names->emplace(rule);
  if (probe().flipped != rule) return;
  for (Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = apply(Op::neg, {gradient});
  }
}

/// Inputs and result of a primitive as the tape may keep them: row-major values, or, for what lies in memory in another
/// order, values with their geometries.
struct Application {
  std::array<NodeRef, 4> values;  // the result comes last
  std::unique_ptr<std::array<graph::Geometry, 4>> geometries;
  std::size_t count = 0;
};
constexpr std::size_t result_at = 3;

/// A primitive on the tape, with the values that its rule reads.
class PrimitiveEntry final : public TapeEntry {
 public:
  PrimitiveEntry(const GradientRow& row, Application application, std::vector<Edge> edges)
      : TapeEntry(std::move(edges)),
        row_(&row),
        result_(*application.values[result_at]),
        count_(application.count),
        values_(std::move(application.values)),
        geometries_(std::move(application.geometries)) {
    if (geometries_) result_.shape = (*geometries_)[result_at].sizes;
    for (std::size_t i = 0; i < count_; ++i) {
      descriptions_[i] = {values_[i]->dtype, geometries_ ? (*geometries_)[i].sizes : values_[i]->shape};
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!(i == result_at ? row.reads_result() : row.reads_input(i))) values_[i].reset();
    }
    if (row.reads != nothing) register_saved();
  }
  ~PrimitiveEntry() override { unregister_saved(); }
  static void* operator new(std::size_t) { return base::ObjectPool<PrimitiveEntry>::allocate(); }
  static void operator delete(void* memory, std::size_t) { base::ObjectPool<PrimitiveEntry>::release(memory); }

  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override {
    const std::array<NodeRef, 4> saved = saved_or_throw();
    std::array<Tensor, 3> values;
    Context context{result_, {}, {}, {descriptions_.data(), count_}, {}};
    for (std::size_t i = 0; i < count_; ++i) {
      if (saved[i]) values[i] = connected(saved[i], geometry(i, saved[i]), inputs()[i]);
    }
    if (saved[result_at]) {
      context.output =
          connected(saved[result_at], geometry(result_at, saved[result_at]), {Ref<TapeEntry>(this), nullptr});
    }
    context.inputs = {values.data(), count_};
    for (std::size_t i = 0; i < count_; ++i) context.needs[i] = static_cast<bool>(inputs()[i]);
    const Gradients found = row_->rule(context, arrived[0]);
    std::vector<Tensor> result(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (found[i].defined() && context.needs[i]) result[i] = fit(found[i], descriptions_[i]);
    }
    if (probe().active) answer_probe(name(), result);
    return result;
  }

  void release() override {
    unregister_saved();
    std::array<NodeRef, 4> values;
    const std::lock_guard guard(lock());
    released_ = true;
    values.swap(values_);
  }

  std::span<const NodeRef> saved() const override { return values_; }
  std::string_view name() const override { return ops::row(row_->op).name; }

 private:
  std::array<NodeRef, 4> saved_or_throw() const {
    const std::lock_guard guard(lock());
    if (released_ && row_->reads != nothing) throw_freed(name());
    return values_;
  }

  graph::Geometry geometry(std::size_t i, const NodeRef& value) const {
    return geometries_ ? (*geometries_)[i] : graph::Geometry::contiguous(value->shape);
  }

  static Tensor fit(const Tensor& gradient, const ops::Description& input) {
    const Tensor summed = sum_to(gradient, input.shape);
    return summed.dtype() == input.dtype ? summed : summed.to(input.dtype);
  }

  const GradientRow* row_;
  graph::NodeInfo result_;
  std::size_t count_;
  std::array<ops::Description, 3> descriptions_;
  std::array<NodeRef, 4> values_;  // those that the rule reads
  std::unique_ptr<std::array<graph::Geometry, 4>> geometries_;
  bool released_ = false;
};

/// A composite with a gradient of its own.
class CompositeEntry final : public TapeEntry {
 public:
  CompositeEntry(std::string_view name, std::vector<Edge> edges, std::vector<ops::Description> descriptions,
                 CustomGradient gradient)
      : TapeEntry(std::move(edges)),
        name_(name),
        descriptions_(std::move(descriptions)),
        gradient_(std::move(gradient)) {}
  ~CompositeEntry() override { unregister_saved(); }

  SavedTensors& saved_tensors() { return saved_; }
  void seal() {
    if (!saved_.empty()) register_saved();
  }

  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override {
    std::vector<Tensor> result = gradient_(arrived[0], saved_.get(*this));
    result.resize(inputs().size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!result[i].defined()) continue;
      if (!inputs()[i]) {
        result[i] = {};
        continue;
      }
      result[i] = sum_to(result[i], descriptions_[i].shape);
      if (result[i].dtype() != descriptions_[i].dtype) result[i] = result[i].to(descriptions_[i].dtype);
    }
    if (probe().active) answer_probe(name_, result);
    return result;
  }

  void release() override {
    unregister_saved();
    saved_.release();
  }

  std::span<const NodeRef> saved() const override { return saved_.nodes(); }
  std::string_view name() const override { return name_; }

 private:
  std::string name_;
  std::vector<ops::Description> descriptions_;
  CustomGradient gradient_;
  SavedTensors saved_;
};

std::vector<Edge> pair_of(Edge first, Edge second) {
  std::vector<Edge> edges;
  edges.push_back(std::move(first));
  edges.push_back(std::move(second));
  return edges;
}

/// A write through a view: the root's gradient loses the region, the value's takes it.
class WriteEntry final : public TapeEntry {
 public:
  WriteEntry(Edge root, Edge value, graph::Geometry root_geometry, graph::Geometry view, std::int64_t numel)
      : TapeEntry(pair_of(std::move(root), std::move(value))),
        root_(std::move(root_geometry)),
        view_(std::move(view)),
        numel_(numel) {}

  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override {
    std::vector<Tensor> result(2);
    if (inputs()[0]) result[0] = clear_in_root(arrived[0], root_, view_, numel_);
    if (inputs()[1]) result[1] = gather_from_root(arrived[0], root_, view_, numel_);
    return result;
  }
  std::string_view name() const override { return "copy_slices"; }

 private:
  graph::Geometry root_;
  graph::Geometry view_;
  std::int64_t numel_;
};

void refuse_write(const Tensor& target, const History* history) {
  if (!history) return;
  if (history->viewed_without_grad) {
    throw AutogradError(
        "in-place write: this view was made while grad mode was off, or by a custom Function, and is written to while "
        "grad mode is on. Make the view in grad mode, write under NoGrad, or clone() it first.");
  }
  if (!history->leaf_requires_grad || history->entry) return;
  throw AutogradError(target.state()->root
                          ? "in-place write: a leaf that requires a gradient is written to in grad mode. Use NoGrad, "
                            "or detach()."
                          : "in-place write: a view of a leaf that requires a gradient is written to in grad mode. Use "
                            "NoGrad, or detach().");
}

void refuse_overlap(const graph::Geometry& geometry) {
  if (numel(geometry.sizes) == 0) return;
  for (int axis = 0; axis < geometry.sizes.rank(); ++axis) {
    if (geometry.strides[axis] != 0 || geometry.sizes[axis] < 2) continue;
    throw ValueError(fmt::format(
        "in-place write: several elements of the target {} overlap in memory (it was expanded). clone() it first.",
        to_string(geometry.sizes)));
  }
}

using Inputs = std::span<const Tensor>;

/// A pinned input's memory may change as soon as the caller has control again.
void finish_pinned(const Application& applied) {
  for (std::size_t i = 0; i < applied.count; ++i) {
    const NodeRef& value = applied.values[i];
    if (value->materialised() && value->buffer()->pinned()) graph::flush();
  }
}

NodeRef recorded(Op op, graph::NodeRefs nodes, graph::NodeInfo&& given) {
  if (op == Op::cast && nodes[0]->dtype == given.dtype) return std::move(nodes[0]);
  NodeRef node = graph::record(op, std::move(nodes), std::move(given));
  if (is_differentiating()) node->mark_learning();
  return node;
}

/// Puts a result on the tape if an input wants a gradient.
Tensor taped(Op op, Inputs inputs, Tensor result, Application applied) {
  const bool wanted = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.requires_grad(); });
  if (!wanted || !is_grad_enabled() || !is_floating(result.dtype())) return result;
  const GradientRow* row = gradient_of(op);
  if (!row || !row->rule) return result;
  result.state()->cell->value()->mark_learning();
  std::vector<Edge> edges;
  edges.reserve(applied.count);
  for (const Tensor& input : inputs) edges.push_back(edge_of(input));
  applied.values[result_at] = result.state()->cell->value();
  require_history(result)->entry = make_ref<PrimitiveEntry>(*row, std::move(applied), std::move(edges));
  return result;
}

/// An elementwise primitive on inputs that are not all row-major: computed in the order that the result has in memory.
Tensor apply_in_order(Op op, Inputs inputs, graph::NodeInfo&& given) {
  Shape sizes;
  std::array<const graph::Geometry*, 3> operands;
  std::size_t operand_count = 0;
  for (const Tensor& input : inputs) {
    sizes = broadcast(sizes, input.sizes());
    // The numbers in a composite's definition are none of PyTorch's operands.
    const NodeRef& value = input.state()->cell->value();
    const bool is_number = input.dim() == 0 && value->op == Op::constant && !value->materialised();
    if (!is_number) operands[operand_count++] = &input.state()->geometry;
  }
  const graph::Geometry result{sizes, graph::result_strides(sizes, {operands.data(), operand_count}), 0};
  const Dims order = graph::memory_order(result.strides);
  Application applied;
  applied.geometries = std::make_unique<std::array<graph::Geometry, 4>>();
  graph::NodeRefs nodes;
  for (const Tensor& input : inputs) {
    const std::size_t i = applied.count++;
    nodes[i] = input.dim() == 0 ? graph::value_of(input)
                                : graph::value_of(input, graph::reordered(input.state()->geometry, order));
    graph::PackedTensor packed = graph::packed(input);
    applied.values[i] = std::move(packed.node);
    (*applied.geometries)[i] = std::move(packed.geometry);
  }
  (*applied.geometries)[result_at] = result;
  Tensor made = graph::wrap(recorded(op, std::move(nodes), std::move(given)), result);
  finish_pinned(applied);
  return taped(op, inputs, std::move(made), std::move(applied));
}

}  // namespace

void flip_gradient_rule(std::string_view name) {
  probe().flipped = name;
  probe().active = !name.empty() || probe().names;
}

void watch_gradient_rules(std::set<std::string, std::less<>>* names) {
  probe().names = names;
  probe().active = names || !probe().flipped.empty();
}

Tensor apply(Op op, Inputs inputs, graph::NodeInfo&& given) {
  std::array<const graph::Geometry*, 3> geometries;
  Application applied;
  for (const Tensor& input : inputs) {
    if (!input.defined())
      throw ValueError(fmt::format("{}: input {} is an undefined tensor", ops::row(op).name, applied.count));
    geometries[applied.count++] = &input.state()->geometry;
  }
  if (ops::row(op).family == ops::Family::elementwise && !graph::are_plain({geometries.data(), applied.count})) {
    return apply_in_order(op, inputs, std::move(given));
  }
  std::size_t i = 0;
  for (const Tensor& input : inputs) applied.values[i++] = graph::value_of(input);
  Tensor result =
      graph::wrap(recorded(op, {applied.values[0], applied.values[1], applied.values[2]}, std::move(given)));
  finish_pinned(applied);
  return taped(op, inputs, std::move(result), std::move(applied));
}

Tensor indexed(Op op, std::initializer_list<Tensor> arrays, std::span<const Tensor> index,
               const ops::Indexing& indexing) {
  std::vector<Tensor> inputs = arrays;
  inputs.insert(inputs.end(), index.begin(), index.end());
  graph::NodeInfo given;
  given.attributes = indexing;
  return apply_many(op, inputs, std::move(given));
}

Tensor apply_many(Op op, const std::vector<Tensor>& inputs, graph::NodeInfo&& given) {
  if (inputs.size() <= std::tuple_size_v<graph::NodeRefs>) return apply(op, inputs, std::move(given));
  std::vector<NodeRef> nodes;
  bool wanted = false;
  bool pinned = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw ValueError(fmt::format("{}: input {} is an undefined tensor", ops::row(op).name, i));
    nodes.push_back(graph::value_of(inputs[i]));
    wanted |= inputs[i].requires_grad();
    pinned |= nodes[i]->materialised() && nodes[i]->buffer()->pinned();
  }
  const NodeRef node = graph::record_many(op, std::move(nodes), std::move(given));
  Tensor result = graph::wrap(node);
  if (pinned) graph::flush();
  const GradientRow* row = gradient_of(op);
  if (!wanted || !is_grad_enabled() || !row) return result;
  std::vector<ops::Description> descriptions;
  std::array<bool, ops::max_inputs> needs{};
  std::vector<Tensor> read;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    descriptions.push_back({inputs[i].dtype(), inputs[i].sizes()});
    needs[i] = inputs[i].requires_grad();
    if (row->reads_input(i)) read.push_back(inputs[i]);
  }
  const auto rule = [row, info = graph::NodeInfo(*node), descriptions, needs](const Tensor& gradient,
                                                                              std::span<const Tensor> saved) {
    std::vector<Tensor> values(descriptions.size());
    auto next = saved.begin();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (row->reads_input(i)) values[i] = *next++;
    }
    const Context context{info, values, row->reads_result() ? saved.back() : Tensor(), descriptions, needs};
    const Gradients found = row->rule(context, gradient);
    return std::vector<Tensor>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(descriptions.size()));
  };
  return with_gradient(ops::row(op).name, inputs, result, read, row->reads_result(), rule);
}

Tensor with_gradient(std::string_view name, const std::vector<Tensor>& inputs, const Tensor& result,
                     const std::vector<Tensor>& saved, bool save_result, CustomGradient gradient) {
  bool wanted = false;
  for (const Tensor& input : inputs) wanted |= input.defined() && input.requires_grad();
  const graph::PackedTensor packed = graph::packed(result);
  Tensor connected_result = graph::wrap(packed.node, packed.geometry);
  if (!wanted || !is_grad_enabled()) return connected_result;
  packed.node->mark_learning();
  std::vector<Edge> edges;
  std::vector<ops::Description> descriptions;
  for (const Tensor& input : inputs) {
    edges.push_back(input.defined() ? edge_of(input) : Edge{});
    descriptions.push_back(input.defined() ? ops::Description{input.dtype(), input.sizes()} : ops::Description{});
  }
  auto entry = make_ref<CompositeEntry>(name, std::move(edges), std::move(descriptions), std::move(gradient));
  for (const Tensor& tensor : saved) entry->saved_tensors().add(tensor, edge_of(tensor));
  if (save_result) entry->saved_tensors().add_result(connected_result, 0);
  entry->seal();
  require_history(connected_result)->entry = entry;
  return connected_result;
}

Tensor alias(const Tensor& tensor, graph::Geometry geometry) {
  numel(geometry.sizes);  // throws if there are too many
  const Ref<History> history = require_history(tensor);
  const graph::TensorState& state = *tensor.state();
  if (is_grad_enabled()) {
    auto view = make_ref<graph::TensorState>(state.cell, std::move(geometry), history, false);
    if (!state.root) {
      view->parent = tensor.state();
      view->parent_generation = history->generation;
    }
    return Tensor(std::move(view));
  }
  auto own = make_ref<History>(geometry);
  own->viewed_without_grad = history->viewed_without_grad ? history->viewed_without_grad : history;
  return Tensor(make_ref<graph::TensorState>(state.cell, std::move(geometry), own, true));
}

Tensor reshaped_result(const Tensor& result, graph::Geometry geometry) {
  if (is_grad_enabled()) return alias(result, std::move(geometry));
  return Tensor(make_ref<graph::TensorState>(result.state()->cell, std::move(geometry), nullptr, true));
}

void tape_write(const Tensor& target, const Edge& value) {
  const graph::TensorState& state = *target.state();
  refuse_write(target, history_of(target));
  const Ref<History> record = require_history(target);
  const std::int64_t cell_numel = state.cell->numel();
  const bool whole = covers(graph::reordered(state.geometry, graph::memory_order(state.geometry.strides)), cell_numel);
  if (whole && state.geometry == record->root && value.entry) {
    record->rebase(value);
    return;
  }
  Edge root;
  if (!(whole && numel(record->root.sizes) == cell_numel) && record->requires_grad()) root = record->edge();
  record->rebase({make_ref<WriteEntry>(std::move(root), value, record->root, state.geometry, cell_numel), nullptr});
}

void assign(const Tensor& target, const Tensor& value, Overlap overlap) {
  graph::TensorState& state = *target.state();
  History* history = history_of(target);
  const bool viewed = history && history->viewed_without_grad && history->viewed_without_grad->requires_grad();
  const bool taped = is_grad_enabled() && (target.requires_grad() || value.requires_grad() || viewed);
  if (taped) refuse_write(target, history);
  if (overlap == Overlap::refused) refuse_overlap(state.geometry);
  if (broadcast(state.geometry.sizes, value.sizes()) != state.geometry.sizes) {
    throw ShapeError(fmt::format("in-place write: a value of shape {} does not broadcast to the target's {}",
                                 to_string(value.sizes()), to_string(state.geometry.sizes)));
  }
  Tensor source = value.dtype() == target.dtype() ? value : value.to(target.dtype());
  if (source.sizes() != state.geometry.sizes) source = source.expand(state.geometry.sizes);
  graph::Cell& cell = *state.cell;
  // In the order in which the target lies in memory, most writes cover their cell from its first element to its last.
  const Dims order = graph::memory_order(state.geometry.strides);
  const graph::Geometry place = graph::reordered(state.geometry, order);
  const bool whole = covers(place, cell.numel());
  NodeRef node = graph::value_of(source, graph::reordered(source.state()->geometry, order));
  if (!whole) {
    node = graph::record(Op::overwrite, cell.value(), std::move(node), graph::view_info(place, *cell.value()));
  }
  if (taped) tape_write(target, edge_of(source));
  graph::write_cell(cell, std::move(node));
}

}  // namespace russet::autograd
