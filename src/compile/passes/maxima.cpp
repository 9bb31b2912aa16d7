// Maxima: what a condition lets through of a max_pool's gradient is decided for the pool's results instead of all that
// it chose from, where the condition asks for what it chose: there the two are the same element. A relu before a pool
// is one:
//   g' = where(y <= 0, 0, max_unpool(y, g))  ->  max_unpool(y, where(max_pool(y) <= 0, 0, g))
//   sum(g') over rows and columns            ->  sum(where(max_pool(y) <= 0, 0, g)), since each element lies once in g'
// Windows of 2 x 2 have a fourth as many results as elements. What else is computed of g' element by element would have
// taken the condition along: then nothing changes.
#include <algorithm>

#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

class Maxima {
 public:
  explicit Maxima(const Program& program) : program_(program), uses_(count_uses(program)), moves_(movable()) {}

  bool any() const { return std::ranges::find(moves_, true) != moves_.end(); }
  /// Whether the value is what such a condition lets through.
  bool moves(ValueId id) const { return moves_[static_cast<std::size_t>(id)]; }
  bool is_sum_of_moved(ValueId id) const { return at(id).op == Op::sum && moves(at(id).inputs[0]); }

 private:
  const Value& at(ValueId id) const { return value_at(program_, id); }

  std::vector<bool> movable() const {
    std::vector<bool> moves;
    moves.reserve(program_.values.size());
    for (const Value& value : program_.values) moves.push_back(is_condition_on_maxima(value));
    for (const Value& reader : program_.values) {
      for (const ValueId input : reader.inputs) {
        if (input >= 0 && !reads_memory_or_sums_up(reader)) moves[static_cast<std::size_t>(input)] = false;
      }
    }
    for (const Output& output : program_.outputs) moves[static_cast<std::size_t>(output.value)] = false;
    return moves;
  }

  static bool reads_memory_or_sums_up(const Value& reader) {
    if (ops::row(reader.op).family == ops::Family::contraction) return true;
    if (reader.op != Op::sum) return false;
    const auto& axes = std::get<ops::Axes>(reader.attributes);
    return axes.contains(2) && axes.contains(3);
  }

  bool is_condition_on_maxima(const Value& value) const {
    if (value.op != Op::where || value.shape.rank() != 4) return false;
    return lets_through(value, value.inputs[1], value.inputs[2]) ||
           lets_through(value, value.inputs[2], value.inputs[1]);
  }

  /// Whether the one is a pool's gradient, for which the value's condition asks, and the other zero.
  bool lets_through(const Value& value, ValueId gradient, ValueId zero) const {
    const Value& unpool = at(gradient);
    const bool is_alone = uses_[static_cast<std::size_t>(gradient)] == 1;
    return unpool.op == Op::max_unpool && is_alone && unpool.shape == value.shape && is_constant(at(zero), 0) &&
           asks_for(value.inputs[0], unpool.inputs[0]) && each_window_chooses(unpool);
  }

  /// Whether no window lies in the padding alone: such a one has a result, but its gradient goes nowhere.
  bool each_window_chooses(const Value& unpool) const {
    const auto& window = std::get<ops::Window>(unpool.attributes);
    const Shape& results = at(unpool.inputs[1]).shape;
    for (int axis = 0; axis < 2; ++axis) {
      for (std::int64_t i = 0; i < results[2 + axis]; ++i) {
        if (!has_elements(window, static_cast<std::size_t>(axis), i, unpool.shape[2 + axis])) return false;
      }
    }
    return true;
  }

  /// Of the window number `which` along an axis of so many elements.
  static bool has_elements(const ops::Window& window, std::size_t axis, std::int64_t which, std::int64_t size) {
    const std::int64_t begin = which * window.stride[axis] - window.padding[axis];
    for (std::int32_t tap = 0; tap < window.kernel[axis]; ++tap) {
      const std::int64_t place = begin + std::int64_t{tap} * window.dilation[axis];
      if (place >= 0 && place < size) return true;
    }
    return false;
  }

  /// Whether the condition is an operator's of elements of `image` and numbers.
  bool asks_for(ValueId condition, ValueId image) const {
    const Value& asked = at(condition);
    if (ops::row(asked.op).family != ops::Family::elementwise || asked.shape != at(image).shape) return false;
    bool asks = false;
    for (const ValueId input : asked.inputs) {
      if (input < 0) break;
      if (input != image && at(input).op != Op::constant) return false;
      asks |= input == image;
    }
    return asks;
  }

  const Program& program_;
  std::vector<std::int32_t> uses_;
  std::vector<bool> moves_;
};

/// The inputs of `value` with `to` in the place of `from`.
Inputs replaced(const Value& value, ValueId from, ValueId to) {
  Inputs inputs = value.inputs;
  std::ranges::replace(inputs, from, to);
  return inputs;
}

ValueId made(Rewriter& rewriter, Value value, const Shape& shape, const Inputs& inputs) {
  value.shape = shape;
  value.strides = contiguous_strides(shape);
  value.inputs = inputs;
  return rewriter.add(std::move(value));
}

/// `value`: where(condition, ...) of an unpool, with new inputs.
ValueId at_maxima(Rewriter& rewriter, const Value& value) {
  const Value condition = rewriter.at(value.inputs[0]);
  const ValueId spread = rewriter.at(value.inputs[1]).op == Op::max_unpool ? value.inputs[1] : value.inputs[2];
  Value unpool = rewriter.at(spread);
  const ValueId image = unpool.inputs[0];
  const Shape results = rewriter.at(unpool.inputs[1]).shape;
  const ValueId maxima = rewriter.make(value, Op::max_pool, {image, image}, unpool.attributes);
  const ValueId asked = made(rewriter, condition, results, replaced(condition, image, maxima));
  Inputs chosen = replaced(value, spread, unpool.inputs[1]);
  chosen[0] = asked;
  unpool.inputs[1] = made(rewriter, value, results, chosen);
  unpool.origin = value.origin;
  return rewriter.add(std::move(unpool));
}

}  // namespace

void maxima(Program& program, const Target&) {
  const Maxima found(program);
  if (!found.any()) return;
  Rewriter rewriter(program);
  rewriter.run([&](Value value, ValueId old) {
    if (found.moves(old)) return at_maxima(rewriter, value);
    if (found.is_sum_of_moved(old)) value.inputs[0] = rewriter.at(value.inputs[0]).inputs[1];
    return rewriter.add(std::move(value));
  });
}

}  // namespace russet::compile::passes
