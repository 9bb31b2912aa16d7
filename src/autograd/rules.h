#pragma once
// The gradient rules: one row for each differentiable primitive, written with operators, so that gradients can be
// differentiated again. The tape saves what a row reads and nothing else.
#include <russet/tensor.h>
#include <array>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "graph/node.h"
#include "ops/op.h"
#include "ops/table.h"

namespace russet::autograd {

/// What a rule reads: bits that add up. `from_in1`: all inputs but the first; `all`: every input and the result.
enum Reads : unsigned {
  nothing = 0,
  in0 = 1,
  in1 = 2,
  in2 = 4,
  from_in1 = (1U << ops::max_inputs) - in1,
  from_in2 = (1U << ops::max_inputs) - in2,
  out = 1U << ops::max_inputs,
  all = 2 * out - 1,
};

template <class... Values>
constexpr unsigned reads(Values... values) {
  return (0U | ... | static_cast<unsigned>(values));
}

/// One application of a primitive, as its gradient rule sees it.
struct Context {
  const graph::NodeInfo& node;     // the result: operator, type, shape, attributes, argument
  std::span<const Tensor> inputs;  // undefined where the rule does not read
  Tensor output;                   // undefined if the rule does not read it
  std::span<const ops::Description> input_descriptions;
  std::array<bool, ops::max_inputs> needs{};  // which inputs want a gradient

  const Tensor& in0() const { return inputs[0]; }
  const Tensor& in1() const { return inputs[1]; }
  const Tensor& in2() const { return inputs[2]; }
  const Tensor& out() const { return output; }
  const Shape& shape_of(std::size_t input) const { return input_descriptions[input].shape; }
};

/// The gradient of each input; an undefined tensor means zero. A gradient may have the result's shape and type where
/// the input was broadcast or cast: the caller sums and casts it.
using Gradients = std::array<Tensor, ops::max_inputs>;

struct GradientRow {
  ops::Op op;
  unsigned reads;
  Gradients (*rule)(const Context& context, const Tensor& gradient);

  constexpr bool reads_input(std::size_t i) const { return (reads >> i) & 1U; }
  constexpr bool reads_result() const { return (reads & out) != 0; }
};

/// Tests prove that they notice a wrong rule: the gradients of the primitive or composite of this name change their
/// sign until another call names another, or "".
void flip_gradient_rule(std::string_view name);
/// The names of rules that run from now on are added to `names`; nullptr ends that.
void watch_gradient_rules(std::set<std::string, std::less<>>* names);

std::span<const GradientRow> gradient_table();
/// The row of an operator; nullptr if its result does not depend smoothly on any input.
const GradientRow* gradient_of(ops::Op op);

}  // namespace russet::autograd
