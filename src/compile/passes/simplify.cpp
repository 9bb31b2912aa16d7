// Simplification: rules that replace a value by a cheaper one with the same bits.
//   strided(strided(x))        -> strided(x)            strided(x) in x's own order -> x
//   strided(exp(a))            -> exp(strided(a))       so that views end up on memory
//   cast(x) to x's own type    -> x                     x * 1, x / 1 -> x
//   sum over axes of size 1    -> cast                  overwrite of the whole -> the new value
//   strided(constant)          -> constant of that shape
//   strided(overwrite(x, y))   -> strided(x)            where y is not seen
//   (a b)^T                    -> b^T a^T               cast(a b)^T -> cast(b^T a^T)
#include <algorithm>
#include <optional>

#include "compile/clusters.h"
#include "compile/passes/passes.h"
#include "graph/strided.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;
using ops::View;

class Simplifier {
 public:
  explicit Simplifier(Program& program) : program_(program), uses_(count_uses(program)) {
    place_.reserve(program.values.size());
    feeds_products_ = feeding([](Op reader) { return reader == Op::matmul || reader == Op::strided; });
    feeds_pools_ = feeding([](Op reader) { return ops::row(reader).family == ops::Family::window; });
  }

  void run() {
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      old_ = id;
      Value value = program_.values[id];
      for (ValueId& input : value.inputs) {
        if (input >= 0) input = place_[static_cast<std::size_t>(input)];
      }
      place_.push_back(simplified(std::move(value)));
      readers_[static_cast<std::size_t>(place_.back())] += uses_[id];
    }
    separate_outputs();
    for (Leaf& leaf : program_.leaves) leaf.value = place_[static_cast<std::size_t>(leaf.value)];
    program_.values = std::move(values_);
  }

 private:
  const Value& at(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  ValueId add(Value value) {
    value.strides = contiguous_strides(value.shape);
    if (value.origin < 0) value.origin = program_.values[old_].origin;
    value.again = program_.values[old_].again;
    values_.push_back(std::move(value));
    readers_.push_back(0);
    return static_cast<ValueId>(values_.size() - 1);
  }

  ValueId simplified(Value value) {
    if (value.leaf >= 0) return add(std::move(value));
    if (value.op == Op::strided) return view(std::move(value));
    if (value.op == Op::cast) return cast(std::move(value));
    if (value.op == Op::overwrite) return overwrite(std::move(value));
    if (is_reduction(value)) return reduction(std::move(value));
    if ((value.op == Op::mul || value.op == Op::div) && is_constant(at(value.inputs[1]), 1) && keeps(value, 0))
      return value.inputs[0];
    if (value.op == Op::mul && is_constant(at(value.inputs[0]), 1) && keeps(value, 1)) return value.inputs[1];
    return add(std::move(value));
  }

  /// The values that nothing but such readers reads.
  template <class IsReader>
  std::vector<bool> feeding(const IsReader& is_reader) const {
    std::vector<bool> feeds(program_.values.size(), true);
    for (const Output& output : program_.outputs) feeds[static_cast<std::size_t>(output.value)] = false;
    for (const Value& value : program_.values) {
      if (is_reader(value.op)) continue;
      for (const ValueId input : value.inputs) {
        if (input >= 0) feeds[static_cast<std::size_t>(input)] = false;
      }
    }
    return feeds;
  }

  /// What pools read of a product's result in another type and shape gets its type first, where the product can do it.
  ValueId cast(Value value) {
    const Value source = at(value.inputs[0]);
    if (source.dtype == value.dtype) return value.inputs[0];
    if (!feeds_pools_[old_] || source.op != Op::strided) return add(std::move(value));
    const Value& product = at(source.inputs[0]);
    const bool reshaped = is_whole(std::get<View>(source.attributes), source.shape, product.shape);
    if (product.op != Op::matmul || !reshaped || !is_used_once(source.inputs[0])) return add(std::move(value));
    Value view = source;
    view.dtype = value.dtype;
    value.shape = product.shape;
    value.inputs = source.inputs;
    view.inputs = {add(std::move(value))};
    return add(std::move(view));
  }

  bool keeps(const Value& value, std::size_t input) const {
    return at(value.inputs[input]).shape == value.shape && at(value.inputs[input]).dtype == value.dtype;
  }

  ValueId overwrite(Value value) {
    const auto& attributes = std::get<View>(value.attributes);
    const Value& source = at(value.inputs[1]);
    if (numel(source.shape) == 0) return value.inputs[0];
    if (!is_whole(attributes, source.shape, value.shape)) return add(std::move(value));
    Value reshaped = value;
    reshaped.op = Op::strided;
    reshaped.inputs = {value.inputs[1]};
    reshaped.attributes = View{contiguous_strides(value.shape), 0, false};
    reshaped.argument = -1;
    return view(std::move(reshaped));
  }

  static bool is_whole(const View& view, const Shape& sizes, const Shape& base) {
    return !view.dynamic && view.offset == 0 && numel(sizes) == numel(base) && graph::is_row_major(sizes, view.strides);
  }

  ValueId reduction(Value value) {
    const Value& source = at(value.inputs[0]);
    auto& axes = std::get<ops::Axes>(value.attributes);
    if (value.op == Op::argmax || value.op == Op::argmin) return add(std::move(value));
    std::uint32_t mask = 0;
    for (int axis = 0; axis < source.shape.rank(); ++axis) {
      if (axes.contains(axis) && source.shape[axis] != 1) mask |= 1U << axis;
    }
    axes.mask = mask;
    if (mask != 0) return add(std::move(value));
    if (value.op == Op::squared_deviations) {  // 0, or NaN where the element has no distance from itself
      value.op = Op::sub;
      value.attributes = {};
      value.inputs[1] = value.inputs[0];
      return add(std::move(value));
    }
    if (source.dtype == value.dtype) return value.inputs[0];
    value.op = Op::cast;
    value.attributes = {};
    return add(std::move(value));
  }

  ValueId view(Value value) {
    const auto& attributes = std::get<View>(value.attributes);
    const Value source = at(value.inputs[0]);
    if (graph::is_identity(attributes, value.shape, source.shape)) return value.inputs[0];
    if (source.op == Op::constant) {
      value.op = Op::constant;
      value.attributes = source.attributes;
      value.inputs = {};
      return add(std::move(value));
    }
    if (source.op == Op::strided) {
      const auto whole = graph::compose_views(attributes, value.shape, std::get<View>(source.attributes), source.shape);
      if (whole) {
        value.attributes = *whole;
        value.inputs = source.inputs;
        value.argument = source.argument;
        return view(std::move(value));
      }
    }
    // Where others see the piece, both arrays would lie in memory.
    if (source.op == Op::overwrite && is_used_once(value.inputs[0]) && misses_piece(value, source)) {
      value.inputs = {source.inputs[0]};
      return view(std::move(value));
    }
    if (const std::optional<ValueId> swapped = transposed_product(value)) return *swapped;
    const bool stays =
        serves_products(value, source) || follows_product(value, source) || reshapes_for_products(value, source);
    if (can_push(value.inputs[0]) && !stays) {
      if (const std::optional<ValueId> pushed = push(value, source)) return *pushed;
    }
    return add(std::move(value));
  }

  /// Whether a view of an overwritten value sees nothing of what was written there.
  bool misses_piece(const Value& value, const Value& overwrite) const {
    return graph::are_disjoint(std::get<View>(value.attributes), value.shape, std::get<View>(overwrite.attributes),
                               at(overwrite.inputs[1]).shape);
  }

  /// Whether what is being simplified is the only reader of the value.
  bool is_used_once(ValueId id) const { return readers_[static_cast<std::size_t>(id)] == 1; }

  /// (a b)^T = b^T a^T: what transposed a result transposes the operands, which costs nothing.
  std::optional<ValueId> transposed_product(const Value& value) {
    const Value source = at(value.inputs[0]);
    const int rank = source.shape.rank();
    if (source.op != Op::matmul || !is_used_once(value.inputs[0]) || value.shape.rank() != rank ||
        !graph::is_transpose(std::get<View>(value.attributes), value.shape, source.shape)) {
      return std::nullopt;
    }
    Value product = source;
    product.shape = value.shape;
    product.inputs = {transpose(source.inputs[1]), transpose(source.inputs[0])};
    return add(std::move(product));
  }

  ValueId transpose(ValueId id) {
    const Value& source = at(id);
    const int rank = source.shape.rank();
    Value swapped;
    swapped.op = Op::strided;
    swapped.dtype = source.dtype;
    swapped.shape = source.shape;
    std::swap(swapped.shape[rank - 1], swapped.shape[rank - 2]);
    Strides strides = contiguous_strides(source.shape);
    std::swap(strides[rank - 1], strides[rank - 2]);
    swapped.attributes = View{strides, 0, false};
    swapped.inputs = {id};
    return nested_view(std::move(swapped));
  }

  /// A cast of a leaf that products read in several orders is computed once, in the leaf's own order.
  bool serves_products(const Value& view, const Value& source) const {
    return source.op == Op::cast && at(source.inputs[0]).leaf >= 0 && feeds_products_[old_] &&
           graph::is_reordering(std::get<View>(view.attributes), view.shape, source.shape);
  }

  /// What products read in another shape, in its own order, is the same memory: it is computed in the shape of what it
  /// is made of.
  bool reshapes_for_products(const Value& view, const Value& source) const {
    return feeds_products_[old_] && is_whole(std::get<View>(view.attributes), view.shape, source.shape);
  }

  /// Values that are computed once and read once may as well be computed at the view's indices.
  bool can_push(ValueId id) const {
    const Op op = at(id).op;
    return op != Op::where && ops::row(op).family == ops::Family::elementwise && is_used_once(id);
  }

  /// A product computes what follows it, a bias above all, where it has its results: not in another order of axes, but
  /// for what its operands can be transposed.
  bool follows_product(const Value& view, const Value& source) const {
    const auto& attributes = std::get<View>(view.attributes);
    if (is_whole(attributes, view.shape, source.shape) || graph::is_transpose(attributes, view.shape, source.shape))
      return false;
    const auto is_product = [&](ValueId input) {
      return input >= 0 && at(input).op == Op::matmul && at(input).shape == source.shape && is_used_once(input);
    };
    return std::ranges::any_of(source.inputs, is_product);
  }

  std::optional<ValueId> push(const Value& value, const Value& source) {
    const auto& attributes = std::get<View>(value.attributes);
    if (attributes.dynamic || numel(value.shape) > numel(source.shape)) return std::nullopt;
    std::array<std::optional<View>, 3> views;
    for (std::size_t i = 0; i < 3 && source.inputs[i] >= 0; ++i) {
      const Value& input = at(source.inputs[i]);
      if (numel(input.shape) == 1) continue;
      const View spread{graph::broadcast_strides(input.shape, contiguous_strides(input.shape), source.shape), 0, false};
      views[i] = graph::compose_views(attributes, value.shape, spread, source.shape);
      if (!views[i]) return std::nullopt;
    }
    Value computed = source;
    computed.shape = value.shape;
    for (std::size_t i = 0; i < 3 && source.inputs[i] >= 0; ++i) {
      if (!views[i]) {
        if (at(source.inputs[i]).shape.rank() <= value.shape.rank()) continue;
        views[i] = View{{}, 0, false};
      }
      Value moved;
      moved.op = Op::strided;
      moved.dtype = at(source.inputs[i]).dtype;
      moved.shape = numel(at(source.inputs[i]).shape) == 1 ? Shape{} : value.shape;
      moved.attributes = *views[i];
      moved.inputs = {source.inputs[i]};
      computed.inputs[i] = nested_view(std::move(moved));
    }
    return add(std::move(computed));
  }

  /// A view made by pushing: it may meet views and products below, but pushes no further.
  ValueId nested_view(Value value) {
    const Value source = at(value.inputs[0]);
    if (graph::is_identity(std::get<View>(value.attributes), value.shape, source.shape)) return value.inputs[0];
    if (source.op == Op::strided) {
      const auto whole = graph::compose_views(std::get<View>(value.attributes), value.shape,
                                              std::get<View>(source.attributes), source.shape);
      if (whole) {
        value.attributes = *whole;
        value.inputs = source.inputs;
        value.argument = source.argument;
      }
    }
    if (const std::optional<ValueId> swapped = transposed_product(value)) return *swapped;
    return add(std::move(value));
  }

  /// A view of all elements in their order is the same memory: the value behind it, if no other output has that.
  ValueId memory_of(ValueId id, const std::vector<bool>& taken) const {
    const Value& value = at(id);
    if (value.op != Op::strided) return id;
    const ValueId source = value.inputs[0];
    const bool whole = is_whole(std::get<View>(value.attributes), value.shape, at(source).shape);
    return whole && at(source).leaf < 0 && !taken[static_cast<std::size_t>(source)] ? source : id;
  }

  /// Each output keeps memory of its own: an output that became another value, or a leaf, is copied.
  void separate_outputs() {
    std::vector<bool> taken(values_.size(), false);
    for (Output& output : program_.outputs) {
      const ValueId target = memory_of(place_[static_cast<std::size_t>(output.value)], taken);
      if (at(target).leaf < 0 && !taken[static_cast<std::size_t>(target)]) {
        taken[static_cast<std::size_t>(target)] = true;
        output.value = target;
        continue;
      }
      Value copy;
      copy.op = Op::cast;
      copy.dtype = at(target).dtype;
      copy.shape = at(target).shape;
      copy.inputs = {target};
      copy.origin = program_.values[static_cast<std::size_t>(output.value)].origin;
      output.value = add(std::move(copy));
      taken.push_back(true);
    }
  }

  Program& program_;
  std::vector<std::int32_t> uses_;
  std::vector<std::int32_t> readers_;  // of each new value: those of the values that it stands for
  std::vector<bool> feeds_products_;   // nothing but products and views reads it
  std::vector<bool> feeds_pools_;      // nothing but pools reads it
  std::vector<ValueId> place_;
  std::vector<Value> values_;
  std::size_t old_ = 0;
};

}  // namespace

void simplify(Program& program, const Target&) { Simplifier(program).run(); }

}  // namespace russet::compile::passes
