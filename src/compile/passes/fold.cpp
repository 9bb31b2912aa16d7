// Fold: what scales the channels of a convolution's result scales its weight instead, where the device adds the shift
// that is left, a bias, at no cost: batch norm in evaluation.
//   y = convolution(x, w) * s + t      ->      y = convolution(x, w * s) + t      s, t: a number for each channel
// Of two that are added up, one adds both shifts, and the other's result is its residual.
#include <unordered_map>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "compile/steady.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// A convolution, in 16 bits or float32, whose channels are scaled and shifted in float32.
struct Normalised {
  ValueId convolution = -1, scale = -1;
  std::vector<ValueId> shifts;
};

class Folding {
 public:
  Folding(Program& program, const Target& target)
      : program_(program),
        target_(target),
        readers_(program, Readers::Views::read),
        steady_(steady_values(program)),
        rewriter_(program) {}

  /// Returns whether anything was folded.
  bool run() {
    for (std::size_t id = 0; id < program_.values.size(); ++id) find(static_cast<ValueId>(id));
    if (found_.empty()) return false;
    for (std::size_t id = 0; id < program_.values.size(); ++id) join_shifts(static_cast<ValueId>(id));
    rewriter_.run([this](Value value, ValueId id) {
      const auto result = found_.find(id);
      return result == found_.end() ? rewriter_.add(std::move(value)) : folded(value, result->second);
    });
    return true;
  }

 private:
  const Value& old(ValueId id) const { return value_at(program_, id); }

  void find(ValueId id) {
    const Value& convolution = old(id);
    if (convolution.op != Op::convolution || !is_floating(convolution.dtype) || size_of(convolution.dtype) > 4) return;
    const ValueId whole = convolution.dtype == DType::float32 ? id : reader(id, Op::cast);
    const ValueId scaled = reader(whole, Op::mul);
    const ValueId shifted = reader(scaled, Op::add);
    if (shifted < 0 || old(whole).dtype != DType::float32) return;
    const ValueId scale = other_input(scaled, whole);
    const ValueId shift = other_input(shifted, scaled);
    if (!is_of_channels(scale, convolution) || !is_of_channels(shift, convolution)) return;
    const bool once = is_steady(convolution.inputs[1]) && is_steady(scale);
    if (!target_.prefers_folded_scales(primitive_of(program_, convolution), once)) return;
    // What is stored in the convolution's type again needs no float32 in between.
    const ValueId stored = reader(shifted, Op::cast);
    const bool is_stored = stored >= 0 && old(stored).dtype == convolution.dtype;
    found_.emplace(is_stored ? stored : shifted, Normalised{id, scale, {shift}});
  }

  bool is_steady(ValueId id) const { return steady_[static_cast<std::size_t>(id)]; }

  void join_shifts(ValueId sum) {
    if (old(sum).op != Op::add) return;
    const auto first = found_.find(old(sum).inputs[0]);
    const auto second = found_.find(old(sum).inputs[1]);
    if (first == found_.end() || second == found_.end() || first == second) return;
    const auto is_read_here = [&](const auto& result) { return readers_.only_reader(result->first) == sum; };
    if (!is_read_here(first) || !is_read_here(second)) return;
    std::vector<ValueId>& shifts = second->second.shifts;
    first->second.shifts.insert(first->second.shifts.end(), shifts.begin(), shifts.end());
    shifts.clear();
  }

  /// What alone reads the value, if it is of this operator, or -1.
  ValueId reader(ValueId id, Op op) const {
    const ValueId only = id < 0 ? -1 : readers_.only_reader(id);
    return only >= 0 && old(only).op == op ? only : -1;
  }

  ValueId other_input(ValueId id, ValueId input) const {
    const Inputs& inputs = old(id).inputs;
    return inputs[inputs[0] == input ? 1 : 0];
  }

  bool is_of_channels(ValueId id, const Value& convolution) const {
    const Value& value = old(id);
    return value.shape.rank() <= 4 && value.dtype == DType::float32 &&
           padded(value.shape, 4) == Shape{1, convolution.shape[1], 1, 1};
  }

  ValueId folded(const Value& reason, const Normalised& normalised) {
    const Value& convolution = old(normalised.convolution);
    const std::int64_t channels = convolution.shape[1];
    const ValueId weight = rewriter_.place(convolution.inputs[1]);
    const ValueId scale = rewriter_.reshape(reason, rewriter_.place(normalised.scale), {channels, 1, 1, 1});
    Value scaled = convolution;
    scaled.again = reason.again;
    const ValueId product = rewriter_.make(reason, Op::mul, {cast(reason, weight, DType::float32), scale});
    scaled.inputs = {rewriter_.place(convolution.inputs[0]), cast(reason, product, rewriter_.at(weight).dtype)};
    ValueId result = rewriter_.add(std::move(scaled));
    if (!normalised.shifts.empty()) {
      const ValueId bias = rewriter_.reshape(reason, sum_of(reason, normalised.shifts), {channels, 1, 1});
      result = rewriter_.make(reason, Op::add, {result, cast(reason, bias, convolution.dtype)});
    }
    return cast(reason, result, reason.dtype);
  }

  ValueId sum_of(const Value& reason, const std::vector<ValueId>& shifts) {
    ValueId sum = rewriter_.place(shifts.front());
    for (std::size_t i = 1; i < shifts.size(); ++i) {
      sum = rewriter_.make(reason, Op::add, {sum, rewriter_.place(shifts[i])});
    }
    return sum;
  }

  ValueId cast(const Value& reason, ValueId id, DType dtype) {
    const Value& value = rewriter_.at(id);
    return value.dtype == dtype ? id : rewriter_.make(reason, Op::cast, {id}, {}, {dtype, value.shape});
  }

  Program& program_;
  const Target& target_;
  Readers readers_;
  std::vector<bool> steady_;
  Rewriter rewriter_;
  std::unordered_map<ValueId, Normalised> found_;  // by the value that takes the place of all
};

}  // namespace

void fold(Program& program, const Target& target) {
  const auto is_preferred = [&](const Value& value) {
    return value.op == Op::convolution && target.prefers_folded_scales(primitive_of(program, value), true);
  };
  if (std::ranges::none_of(program.values, is_preferred)) return;
  if (Folding(program, target).run()) prune(program, target);
}

}  // namespace russet::compile::passes
