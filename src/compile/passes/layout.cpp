// Layout: contractions over images say in which memory order they like their result; what is computed from it element
// by element keeps that order, so that nothing is reordered in between. What has no order to keep takes that of its
// reader. What leaves the plan is row-major.
//   x -> convolution -> [NHWC] -> relu -> [NHWC] -> convolution -> [NHWC] -> sum over H, W -> [NC]
//   matrix product -> [N, CHW] -> unpool -> [NHWC] -> convolution's gradient
//   matrix product -> [n, s, h, e] -> seen as [n, s, h * e] -> matrix product      where a kernel stores it so
// What is made of a pool for a reader that wants another order is in that from the pool on, which computes it then.
//   [NHWC] -> pool -> [NCHW] -> * 1/4 -> [N, CHW] -> matrix product
#include <algorithm>
#include <numeric>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "graph/strided.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Family;
using ops::Op;

/// Dense strides for `shape` whose axes lie in the order of `model`'s.
Strides ordered_like(const Shape& shape, const Strides& model) {
  std::vector<int> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return model[a] > model[b]; });
  Strides strides = Strides::filled(shape.rank(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= std::max<std::int64_t>(shape[axes[i]], 1);
  }
  return strides;
}

class Layout {
 public:
  Layout(Program& program, const Target& target)
      : program_(program),
        target_(target),
        fixed_(program.values.size(), false),
        views_(program.values.size()),
        readers_(program.values.size()) {
    for (const Output& output : program.outputs) fixed_[static_cast<std::size_t>(output.value)] = true;
    for (std::size_t id = 0; id < program.values.size(); ++id) note_readers(static_cast<ValueId>(id));
  }

  void run() {
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      if (is_free_to_choose(id)) take(id, wish(id));
    }
    const std::vector<bool> of_pools = find_made_of_pools();
    for (std::size_t id = program_.values.size(); id-- > 0;) {
      if (is_free_to_choose(id) && of_pools[id]) take(id, order_of_readers(id));
    }
    for (std::size_t id = program_.values.size(); id-- > 0;) {
      const Value& value = program_.values[id];
      const bool computed = ops::row(value.op).family == Family::window || is_pointwise(value);
      const bool neutral = computed && value.strides == contiguous_strides(value.shape);
      if (neutral && is_free_to_choose(id)) take(id, wish_of_readers(id));
    }
  }

 private:
  bool is_free_to_choose(std::size_t id) const {
    const Value& value = program_.values[id];
    return value.leaf < 0 && !fixed_[id] && value.shape.rank() == 4 && numel(value.shape) != 0;
  }

  void take(std::size_t id, const Strides& wanted) {
    Value& value = program_.values[id];
    if (wanted != value.strides && views_resolve(id, wanted)) value.strides = wanted;
  }

  /// Primitives that know row-major operands only fix what they read; views must stay affine.
  void note_readers(ValueId id) {
    const Value& value = value_at(program_, id);
    const Family family = ops::row(value.op).family;
    for (const ValueId input : value.inputs) {
      if (input < 0) continue;
      (is_view(value) ? views_ : readers_)[static_cast<std::size_t>(input)].push_back(id);
      const bool any_order = is_fusable(value) || is_view(value) || family == Family::window ||
                             family == Family::attention || (family == Family::contraction && value.op != Op::matmul);
      if (!any_order) fixed_[static_cast<std::size_t>(input)] = true;
    }
  }

  bool views_resolve(std::size_t id, const Strides& strides) const {
    const Value& base = program_.values[id];
    return std::all_of(views_[id].begin(), views_[id].end(), [&](ValueId reader) {
      const Value& view = value_at(program_, reader);
      return graph::resolve_view(std::get<ops::View>(view.attributes), view.shape, base.shape, strides).has_value();
    });
  }

  Strides wish(std::size_t id) const {
    const Value& value = program_.values[id];
    const Family family = ops::row(value.op).family;
    if (value.op == Op::matmul) return wish_of_product(id);
    if (family == Family::contraction) return target_.preferred_strides(primitive_of(program_, value), -1);
    if (family == Family::attention) return wish_of_attention(value);
    if (family != Family::window && !is_pointwise(value)) return value.strides;
    for (const ValueId input : value.inputs) {
      if (input < 0) continue;
      const Value& source = value_at(program_, input);
      if (is_view(source) || source.shape.rank() != 4) continue;
      const bool full = family == Family::window || source.shape == value.shape;
      if (full && source.strides != contiguous_strides(source.shape)) return ordered_like(value.shape, source.strides);
    }
    return value.strides;
  }

  /// Results of products lie as a view of them shows them, if it leaves their rows together and a kernel can store them
  /// so: heads side by side, where the next product takes them as one line.
  Strides wish_of_product(std::size_t id) const {
    const Value& value = program_.values[id];
    for (const ValueId view : views_[id]) {
      const std::optional<Strides> strides = row_major_in(value_at(program_, view), value.shape);
      if (!strides) continue;
      Value placed = value;
      placed.strides = *strides;
      if (target_.stores_into_arrays(primitive_of(program_, placed))) return *strides;
    }
    return value.strides;
  }

  /// Strides of an array in which a view of it, whose last axis is the array's, is row-major.
  static std::optional<Strides> row_major_in(const Value& view, const Shape& sizes) {
    const auto& shown = std::get<ops::View>(view.attributes);
    if (!graph::is_reordering(shown, view.shape, sizes)) return std::nullopt;
    const Strides plain = contiguous_strides(sizes);
    const Strides wanted = contiguous_strides(view.shape);
    Strides strides = plain;
    for (int axis = 0; axis < sizes.rank(); ++axis) {
      int from = 0;
      while (from < sizes.rank() && (shown.strides[from] != plain[axis] || view.shape[from] != sizes[axis])) ++from;
      if (from == sizes.rank()) return std::nullopt;
      strides[axis] = wanted[from];
    }
    return strides[sizes.rank() - 1] == 1 ? std::optional(strides) : std::nullopt;
  }

  /// Results and gradients of an attention get the memory order of the operand that they belong to (query, key or
  /// value),
  /// which has heads side by side where one product made all three.
  Strides wish_of_attention(const Value& value) const {
    const bool of_key = value.op == Op::attention_key_gradient || value.op == Op::attention_value_gradient;
    const Value& model = value_at(program_, value.inputs[of_key ? 1 : 0]);
    if (!is_view(model)) return ordered_like(value.shape, model.strides);
    const Value& base = value_at(program_, model.inputs[0]);
    const auto affine =
        graph::resolve_view(std::get<ops::View>(model.attributes), model.shape, base.shape, base.strides);
    return affine ? ordered_like(value.shape, affine->strides) : value.strides;
  }

  /// Which values are what a pool gives, or made of that alone, element by element.
  std::vector<bool> find_made_of_pools() const {
    std::vector<bool> made(program_.values.size(), false);
    for (std::size_t id = 0; id < made.size(); ++id) {
      const Value& value = program_.values[id];
      const auto is_made = [&](ValueId input) {
        return input < 0 || made[static_cast<std::size_t>(input)] || value_at(program_, input).shape.empty();
      };
      made[id] = value.op == Op::sum_pool || value.op == Op::max_pool ||
                 (is_pointwise(value) && value.inputs[0] >= 0 && std::ranges::all_of(value.inputs, is_made));
    }
    return made;
  }

  /// The order of what all readers compute, if it is one.
  Strides order_of_readers(std::size_t id) const {
    const Value& value = program_.values[id];
    const std::vector<ValueId>& readers = readers_[id];
    const Strides& wanted = readers.empty() ? value.strides : value_at(program_, readers.front()).strides;
    const bool all = std::ranges::all_of(readers, [&](ValueId reader) {
      const Value& computed = value_at(program_, reader);
      return is_pointwise(computed) && computed.shape == value.shape && computed.strides == wanted;
    });
    return all ? wanted : value.strides;
  }

  Strides wish_of_readers(std::size_t id) const {
    const Value& value = program_.values[id];
    for (const ValueId reader_id : readers_[id]) {
      const Value& reader = value_at(program_, reader_id);
      const Family family = ops::row(reader.op).family;
      if (family == Family::contraction && reader.op != Op::matmul) {
        const auto input = std::find(reader.inputs.begin(), reader.inputs.end(), static_cast<ValueId>(id));
        return target_.preferred_strides(primitive_of(program_, reader),
                                         static_cast<int>(input - reader.inputs.begin()));
      }
      const bool follows = family == Family::window || (is_pointwise(reader) && reader.shape == value.shape);
      if (follows && reader.strides != contiguous_strides(reader.shape)) {
        return ordered_like(value.shape, reader.strides);
      }
    }
    return value.strides;
  }

  Program& program_;
  const Target& target_;
  std::vector<bool> fixed_;
  std::vector<std::vector<ValueId>> views_, readers_;  // of each value
};

}  // namespace

void layout(Program& program, const Target& target) { Layout(program, target).run(); }

}  // namespace russet::compile::passes
