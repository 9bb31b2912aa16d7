// The pass decompose: what an attention and its gradients have in common is computed once, and read as it lies.
#include <gtest/gtest.h>

#include "compile/plan.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

/// A device that has kernels for attention, and prefers products.
class PrefersProducts final : public PlansAlone {
 public:
  bool has_attention(DType) const override { return true; }
  bool prefers_attention(const compile::Primitive&) const override { return false; }
};

constexpr std::int64_t batch = 8, heads = 12, length = 128, width = 64;
const Shape by_head{batch, heads, length, width};
const Shape rows{batch, heads, length, 1};

/// An attention of bfloat16 and its three gradients, of leaves, all kept.
compile::Program attention() {
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
    program.outputs.push_back({add(op, DType::bfloat16, by_head, inputs), -1});
  };
  const compile::ValueId query = add_leaf(DType::bfloat16, by_head);
  const compile::ValueId key = add_leaf(DType::bfloat16, by_head);
  const compile::ValueId value = add_leaf(DType::bfloat16, by_head);
  const compile::ValueId gradient = add_leaf(DType::bfloat16, by_head);
  const compile::ValueId delta = add_leaf(DType::float32, rows);
  const compile::ValueId logsumexp = add(ops::Op::attention_logsumexp, DType::float32, rows, {query, key});
  add_output(ops::Op::attention, {query, key, value});
  add_output(ops::Op::attention_value_gradient, {query, key, gradient, logsumexp});
  add_output(ops::Op::attention_key_gradient, {query, key, value, gradient, logsumexp, delta});
  add_output(ops::Op::attention_query_gradient, {query, key, value, gradient, logsumexp, delta});
  return program;
}

TEST(Decompose, ComputesScoresOnceAndCopiesNothing) {
  const compile::Plan plan = compile::make_plan(attention(), PrefersProducts());
  int products = 0;
  int wide = 0;
  for (const compile::Step& step : plan.program.steps) {
    const auto* product = std::get_if<compile::Primitive>(&step);
    if (product == nullptr) continue;
    ++products;
    wide += product->output.access.dtype == DType::float32;
  }
  EXPECT_EQ(products, 6);  // scores, the gradient for the probabilities, the result, and three gradients
  EXPECT_EQ(wide, 1);      // scores stay as they were added up
  // All between the products is one sweep; transposes of its results are read where they lie.
  EXPECT_EQ(plan.program.steps.size(), 7U);
}

}  // namespace
}  // namespace russet
