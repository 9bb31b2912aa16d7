// The pass decompose: what an attention and its gradients have in common is computed once, and read as it lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compile/plan.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

/// A device that has kernels for attention, and prefers products, of lines of so many elements at once.
class PrefersProducts final : public PlansAlone {
 public:
  explicit PrefersProducts(std::int64_t multiple = 1) : multiple_(multiple) {}
  bool has_attention(DType) const override { return true; }
  bool prefers_attention(const compile::Primitive&) const override { return false; }
  std::int64_t line_multiple(DType) const override { return multiple_; }

 private:
  std::int64_t multiple_;
};

/// An attention and its three gradients, of leaves, all kept.
compile::Program attention(DType type, std::int64_t length) {
  constexpr std::int64_t batch = 8, heads = 12, width = 64;
  const Shape by_head{batch, heads, length, width};
  const Shape rows{batch, heads, length, 1};
  compile::Program program;
  const auto add = [&](ops::Op op, DType dtype, const Shape& shape, compile::Inputs inputs) {
    program.values.push_back(
        {{{dtype, shape}, op, ops::Attention{.scale = 0.125}}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](DType dtype, const Shape& shape) {
    const compile::ValueId id = add(ops::Op::leaf, dtype, shape, {});
    program.values.back().attributes = {};
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const auto add_output = [&](ops::Op op, compile::Inputs inputs) {
    program.outputs.push_back({add(op, type, by_head, inputs), -1});
  };
  const compile::ValueId query = add_leaf(type, by_head);
  const compile::ValueId key = add_leaf(type, by_head);
  const compile::ValueId value = add_leaf(type, by_head);
  const compile::ValueId gradient = add_leaf(type, by_head);
  const compile::ValueId delta = add_leaf(DType::float32, rows);
  const compile::ValueId logsumexp = add(ops::Op::attention_logsumexp, DType::float32, rows, {query, key});
  add_output(ops::Op::attention, {query, key, value});
  add_output(ops::Op::attention_value_gradient, {query, key, gradient, logsumexp});
  add_output(ops::Op::attention_key_gradient, {query, key, value, gradient, logsumexp, delta});
  add_output(ops::Op::attention_query_gradient, {query, key, value, gradient, logsumexp, delta});
  return program;
}

std::vector<compile::Primitive> products_of(const compile::Plan& plan) {
  std::vector<compile::Primitive> products;
  for (const compile::Step& step : plan.program.steps) {
    if (const auto* product = std::get_if<compile::Primitive>(&step)) products.push_back(*product);
  }
  return products;
}

/// How often groups compute an operator.
std::ptrdiff_t count_of(ops::Op op, const compile::Plan& plan) {
  std::ptrdiff_t count = 0;
  for (const compile::Step& step : plan.program.steps) {
    const auto* group = std::get_if<compile::Group>(&step);
    if (group == nullptr) continue;
    count += std::ranges::count_if(group->code, [&](const compile::Instruction& in) {
      return in.kind == compile::Instruction::Kind::compute && in.op == op;
    });
  }
  return count;
}

TEST(Decompose, ComputesScoresOnceAndCopiesNothing) {
  const compile::Plan plan = compile::make_plan(attention(DType::bfloat16, 128), PrefersProducts());
  const std::vector<compile::Primitive> products = products_of(plan);
  EXPECT_EQ(products.size(), 6U);  // scores, the gradient for the probabilities, the result, and three gradients
  // Scores stay as they were added up.
  EXPECT_EQ(std::ranges::count(products, DType::float32, [](const auto& one) { return one.output.access.dtype; }), 1);
  // All between the products is one sweep; transposes of its results are read where they lie.
  EXPECT_EQ(plan.program.steps.size(), 7U);
  EXPECT_EQ(count_of(ops::Op::exp, plan), 1) << "gradients compute the probabilities of the attention again";
}

TEST(Decompose, TakesALogsumexpThatIsNotOfTheSameScores) {
  compile::Program program = attention(DType::bfloat16, 128);
  for (compile::Value& value : program.values) {
    if (value.op == ops::Op::attention_logsumexp) std::get<ops::Attention>(value.attributes).scale = 0.25;
  }
  // Of the logsumexp, of the attention, and of its gradients.
  EXPECT_EQ(count_of(ops::Op::exp, compile::make_plan(std::move(program), PrefersProducts())), 3);
}

TEST(Decompose, FillsLinesUp) {
  for (const auto& [length, filled] : {std::pair{197, 200}, {128, 128}, {18, 18}}) {
    const compile::Plan plan = compile::make_plan(attention(DType::float32, length), PrefersProducts(4));
    const std::vector<compile::Primitive> products = products_of(plan);
    EXPECT_EQ(products.size(), 6U);
    std::ptrdiff_t of_filled = 0;
    for (const compile::Primitive& product : products) {
      const auto has = [&](const compile::Operand& operand) {
        return operand.sizes[2] == filled || operand.sizes[3] == filled;
      };
      of_filled += has(product.inputs[0]) || has(product.inputs[1]);
    }
    EXPECT_EQ(of_filled, 6) << length;
    // Beside the six and the sweep between them: the zeros, which columns are keys, keys and values in two pieces each,
    // and two gradients without the rows that were added.
    EXPECT_EQ(plan.program.steps.size(), length == filled ? 7U : 15U);
  }
}

}  // namespace
}  // namespace russet
