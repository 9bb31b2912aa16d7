// The pass pair: the gradients of an attention that read the same are one step.
#include <gtest/gtest.h>

#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"

namespace russet {
namespace {

using ops::Op;

constexpr std::int64_t batch = 6, length = 12, width = 8;
const Shape matrices{batch, length, width};
const Shape rows{batch, length, 1};

/// A device that has kernels for attention.
class HasAttention : public PlansAlone {
 public:
  bool has_attention(DType) const override { return true; }
};

/// One that has a kernel for the three gradients, too, and keeps what it was asked.
class ComputesGradientsAtOnce final : public HasAttention {
 public:
  bool computes_gradients_at_once(const compile::Primitive& key_gradient) const override {
    asked_.push_back(key_gradient);
    return true;
  }
  mutable std::vector<compile::Primitive> asked_;
};

/// The three gradients of an attention, of leaves, the query's first; `of_key`: the delta that the key's reads is one
/// of its own.
compile::Program gradients(bool of_key) {
  compile::Program program;
  const auto add = [&](Op op, DType dtype, const Shape& shape, compile::Inputs inputs) {
    program.values.push_back(
        {{{dtype, shape}, op, ops::Attention{.scale = 0.125}}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](DType dtype, const Shape& shape) {
    const compile::ValueId id = add(Op::leaf, dtype, shape, {});
    program.values.back().attributes = {};
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const auto add_output = [&](Op op, compile::Inputs inputs) {
    program.outputs.push_back({add(op, DType::bfloat16, matrices, inputs), -1});
  };
  const compile::ValueId query = add_leaf(DType::bfloat16, matrices);
  const compile::ValueId key = add_leaf(DType::bfloat16, matrices);
  const compile::ValueId value = add_leaf(DType::bfloat16, matrices);
  const compile::ValueId gradient = add_leaf(DType::bfloat16, matrices);
  const compile::ValueId logsumexp = add_leaf(DType::float32, rows);
  const compile::ValueId delta = add_leaf(DType::float32, rows);
  const compile::ValueId other = of_key ? add_leaf(DType::float32, rows) : delta;
  add_output(Op::attention_query_gradient, {query, key, value, gradient, logsumexp, delta});
  add_output(Op::attention_key_gradient, {query, key, value, gradient, logsumexp, other});
  add_output(Op::attention_value_gradient, {query, key, gradient, logsumexp});
  return program;
}

std::vector<compile::Primitive> steps_of(const compile::Plan& plan) {
  std::vector<compile::Primitive> steps;
  for (const compile::Step& step : plan.program.steps) steps.push_back(std::get<compile::Primitive>(step));
  return steps;
}

std::vector<Op> companions_of(const compile::Primitive& primitive) {
  std::vector<Op> ops;
  for (const compile::Companion& companion : primitive.companions) ops.push_back(companion.op);
  std::ranges::sort(ops);
  return ops;
}

const std::vector<Op> both{Op::attention_query_gradient, Op::attention_value_gradient};

TEST(Pair, ThreeGradientsAreOneStepWhereTheDeviceHasAKernelForThem) {
  const ComputesGradientsAtOnce target;
  const compile::Plan plan = compile::make_plan(gradients(false), target);
  const std::vector<compile::Primitive> steps = steps_of(plan);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].op, Op::attention_key_gradient);
  EXPECT_EQ(companions_of(steps[0]), both);
  ASSERT_EQ(target.asked_.size(), 1U);
  EXPECT_EQ(target.asked_[0].op, Op::attention_key_gradient);
  EXPECT_EQ(companions_of(target.asked_[0]), both);
  // Each result has memory of its own, and the plan counts all of it.
  std::vector<std::int32_t> written;
  compile::for_each_access(plan.program.steps[0], [&](std::int32_t slot, bool writes) {
    if (writes) written.push_back(slot);
  });
  std::ranges::sort(written);
  EXPECT_EQ(std::ranges::unique(written).begin() - written.begin(), 3);
  constexpr std::size_t matrix_bytes = 2 * batch * length * width;
  constexpr std::size_t row_bytes = 4 * batch * length;
  EXPECT_EQ(compile::bytes_of(plan.program.steps[0]), 7 * matrix_bytes + 2 * row_bytes);
}

TEST(Pair, TheQuerysGradientIsAStepOfItsOwnElsewhere) {
  const HasAttention target;
  const std::vector<compile::Primitive> steps = steps_of(compile::make_plan(gradients(false), target));
  ASSERT_EQ(steps.size(), 2U);
  for (const compile::Primitive& step : steps) {
    const bool of_key = step.op == Op::attention_key_gradient;
    EXPECT_EQ(companions_of(step), of_key ? std::vector<Op>{Op::attention_value_gradient} : std::vector<Op>{});
  }
}

TEST(Pair, GradientsThatReadOtherNumbersStayApart) {
  const ComputesGradientsAtOnce target;
  EXPECT_EQ(steps_of(compile::make_plan(gradients(true), target)).size(), 2U);
  EXPECT_TRUE(target.asked_.empty());
}

/// What is added up for the delta of three gradients.
struct Sums {
  std::uint32_t axes = 4;  // the last one
  bool of_gradient = true;
  Op op = Op::mul;
  DType result = DType::bfloat16;
  bool computed = false;  // the result, by the group that adds up
  bool turned = false;    // the factors
};

/// The three gradients of an attention whose delta is computed in the program.
struct OfSums {
  explicit OfSums(const Sums& sums = {}) {
    const auto leaf = [&](DType dtype, const Shape& shape) { return small.leaf(dtype, shape); };
    const ops::Attention attributes{.scale = 0.125};
    const auto query = leaf(DType::bfloat16, matrices);
    const auto key = leaf(DType::bfloat16, matrices);
    const auto value = leaf(DType::bfloat16, matrices);
    const auto gradient = leaf(DType::bfloat16, matrices);
    auto result = leaf(sums.result, matrices);
    if (sums.computed) result = small.add(Op::neg, sums.result, matrices, {result});
    const auto logsumexp = leaf(DType::float32, rows);
    factor = small.add(Op::cast, DType::float32, matrices, {sums.of_gradient ? gradient : query});
    const auto other = small.add(Op::cast, DType::float32, matrices, {result});
    const auto product = small.add(sums.op, DType::float32, matrices,
                                   sums.turned ? compile::Inputs{other, factor} : compile::Inputs{factor, other});
    const Shape sizes = sums.axes == 4 ? rows : Shape{1, length, 1};
    delta = small.add(Op::sum, DType::float32, sizes, {product}, ops::Axes{sums.axes});
    small.output(small.add(Op::attention_query_gradient, DType::bfloat16, matrices,
                           {query, key, value, gradient, logsumexp, delta}, attributes));
    small.output(small.add(Op::attention_key_gradient, DType::bfloat16, matrices,
                           {query, key, value, gradient, logsumexp, delta}, attributes));
    small.output(small.add(Op::attention_value_gradient, DType::bfloat16, matrices, {query, key, gradient, logsumexp},
                           attributes));
  }

  testing::SmallProgram small;
  compile::ValueId factor = -1, delta = -1;
};

/// What the step of the three gradients reads as delta, and how many steps there are.
std::pair<compile::Operand, std::size_t> delta_in(const OfSums& program, const compile::Target& target) {
  const compile::Plan plan = compile::make_plan(program.small.program, target);
  for (const compile::Step& step : plan.program.steps) {
    const auto* const primitive = std::get_if<compile::Primitive>(&step);
    if (primitive != nullptr && primitive->op == Op::attention_key_gradient) {
      return {primitive->inputs[5], plan.program.steps.size()};
    }
  }
  return {};
}

TEST(Pair, ThreeGradientsReadTheResultInsteadOfDelta) {
  const ComputesGradientsAtOnce target;
  const auto [operand, steps] = delta_in(OfSums(), target);
  EXPECT_EQ(operand.sizes, matrices);
  EXPECT_EQ(operand.access.dtype, DType::bfloat16);
  EXPECT_EQ(steps, 1U);
  ASSERT_EQ(target.asked_.size(), 1U);
  EXPECT_EQ(target.asked_[0].inputs[5].sizes, matrices);
  EXPECT_EQ(delta_in(OfSums({.turned = true}), target).first.sizes, matrices);
}

TEST(Pair, DeltaIsReadWhereItIsNotThat) {
  EXPECT_EQ(delta_in(OfSums(), HasAttention()).first.sizes, rows);  // another device
  const auto expect_delta = [](const Sums& sums, const Shape& sizes = rows) {
    EXPECT_EQ(delta_in(OfSums(sums), ComputesGradientsAtOnce()).first.sizes, sizes);
  };
  expect_delta({.of_gradient = false});
  expect_delta({.op = Op::add});
  expect_delta({.axes = 5}, {1, length, 1});
  expect_delta({.result = DType::float16});
  expect_delta({.computed = true});
}

TEST(Pair, DeltaIsStillComputedForOthers) {
  OfSums program;
  program.small.output(program.delta);
  const auto [operand, steps] = delta_in(program, ComputesGradientsAtOnce());
  EXPECT_EQ(operand.sizes, matrices);
  EXPECT_EQ(steps, 2U);
  OfSums read;
  read.small.output(read.small.add(Op::exp, DType::float32, rows, {read.delta}));
  EXPECT_EQ(delta_in(read, ComputesGradientsAtOnce()).second, 2U);
  OfSums multiplied;  // by a step of its own
  const auto factor = multiplied.small.leaf(DType::float32, {batch, 1, width});
  multiplied.small.output(multiplied.small.add(Op::matmul, DType::float32, matrices, {multiplied.delta, factor}));
  EXPECT_EQ(delta_in(multiplied, ComputesGradientsAtOnce()).second, 3U);
  OfSums besides;  // what the group stores with it
  besides.small.output(besides.factor);
  EXPECT_EQ(delta_in(besides, ComputesGradientsAtOnce()).second, 2U);
}

}  // namespace
}  // namespace russet
