// The pass dropout_bits: gradients of an attention read what its dropout keeps, if the attention can store that.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

class KnowsBits final : public PlansAlone {
 public:
  bool has_attention(DType) const override { return true; }
  bool computes_gradients_at_once(const Primitive&) const override { return true; }
  bool has_kernel(const Primitive& primitive) const override {
    const auto is_bits = [](const compile::Companion& companion) { return companion.op == Op::uniform; };
    if (std::ranges::any_of(primitive.companions, is_bits)) return stores_;
    asked_.push_back(primitive);
    return reads_;
  }
  bool stores_ = true;
  bool reads_ = true;
  mutable std::vector<Primitive> asked_;
};

const Shape matrix{3, 2, 33, 8};
const Shape scores{3, 2, 33, 70};

Operand drawn(int argument) { return {{-1, DType::float32, 0, argument, contiguous_strides(scores)}, scores}; }

/// An attention, another one, and the gradients of the first.
class Steps {
 public:
  Steps() {
    const auto operand = [](std::int32_t slot) {
      return Operand{{slot, DType::bfloat16, 0, -1, contiguous_strides(matrix)}, matrix};
    };
    Primitive attention;
    attention.op = Op::attention;
    attention.attributes = ops::Attention{.scale = 1, .dropout = 0.5, .seed = 3};
    attention.inputs = {operand(0), operand(1), operand(2), drawn(4)};
    attention.output = operand(3);
    Primitive between = attention;
    between.inputs[3] = drawn(5);
    Primitive gradients = attention;
    gradients.op = Op::attention_key_gradient;
    gradients.inputs = {operand(0), operand(1), operand(2), operand(4), operand(5), operand(6), drawn(4)};
    gradients.companions = {{.op = Op::attention_value_gradient, .output = operand(7)},
                            {.op = Op::attention_query_gradient, .output = operand(8)}};
    program.steps = {attention, between, gradients};
    program.slots.resize(9);
  }
  Primitive& step(std::size_t i) { return std::get<Primitive>(program.steps[i]); }
  ops::Attention& attributes(std::size_t i) { return std::get<ops::Attention>(step(i).attributes); }
  const Operand& kept() { return step(2).inputs[6]; }

  compile::Program program;
};

bool hands_over(Steps& steps, const KnowsBits& target = {}) {
  const std::size_t slots = steps.program.slots.size();
  compile::passes::dropout_bits(steps.program, target);
  EXPECT_EQ(steps.program.slots.size(), steps.kept().access.slot >= 0 ? slots + 1 : slots);
  return steps.kept().access.slot >= 0;
}

TEST(DropoutBits, AreHandedOver) {
  Steps steps;
  const KnowsBits target;
  ASSERT_TRUE(hands_over(steps, target));
  const Shape sizes{3, 2, 8, 34};
  const Operand bits{{9, DType::int16, 0, -1, contiguous_strides(sizes)}, sizes};
  EXPECT_EQ(steps.kept(), bits);
  ASSERT_EQ(steps.step(0).companions.size(), 1U);
  EXPECT_EQ(steps.step(0).companions[0], (compile::Companion{.op = Op::uniform, .output = bits}));
  EXPECT_TRUE(steps.step(1).companions.empty());
  EXPECT_EQ(steps.program.slots[9].bytes, 2 * static_cast<std::size_t>(numel(sizes)));
  ASSERT_EQ(target.asked_.size(), 1U);
  EXPECT_EQ(target.asked_[0].inputs[6], bits);
}

TEST(DropoutBits, AreStoredOnceForTwoGradients) {
  Steps steps;
  steps.program.steps.push_back(steps.step(2));
  ASSERT_TRUE(hands_over(steps));
  EXPECT_EQ(steps.step(0).companions.size(), 1U);
  EXPECT_EQ(steps.step(3).inputs[6], steps.kept());
}

TEST(DropoutBits, AreNotWhereTheDeviceDoesNotKnowThem) {
  for (const bool stores : {false, true}) {
    Steps steps;
    KnowsBits target;
    target.stores_ = stores;
    target.reads_ = !stores;
    EXPECT_FALSE(hands_over(steps, target));
    EXPECT_TRUE(steps.step(0).companions.empty());
  }
  Steps limited;
  limited.program.room = 1 << 20;
  EXPECT_FALSE(hands_over(limited));
}

TEST(DropoutBits, AreOfTheSameNumbers) {
  Steps seed;
  seed.attributes(0).seed = 4;
  EXPECT_FALSE(hands_over(seed));
  Steps share;
  share.attributes(0).dropout = 0.25;
  EXPECT_FALSE(hands_over(share));
  Steps place;
  place.step(0).inputs[3] = drawn(6);
  EXPECT_FALSE(hands_over(place));
  Steps other;  // gradients of the same attention are none
  other.program.steps[0] = other.program.steps[2];
  EXPECT_FALSE(hands_over(other));
  Steps later;
  std::swap(later.program.steps[0], later.program.steps[2]);
  compile::passes::dropout_bits(later.program, KnowsBits());
  EXPECT_EQ(later.step(0).inputs[6], drawn(4));
}

TEST(DropoutBits, AreNotOfNumbersInMemory) {
  Steps steps;
  for (Operand* const uniform : {&steps.step(0).inputs[3], &steps.step(2).inputs[6]}) {
    uniform->access = {6, DType::float32, 0, -1, contiguous_strides(scores)};
  }
  const Operand before = steps.kept();
  compile::passes::dropout_bits(steps.program, KnowsBits());
  EXPECT_EQ(steps.kept(), before);
  Steps without;
  for (const std::size_t i : {0U, 1U, 2U}) {
    without.attributes(i).dropout = 0;
    without.step(i).inputs.pop_back();
  }
  compile::passes::dropout_bits(without.program, KnowsBits());
  EXPECT_EQ(without.program.slots.size(), 9U);
}

TEST(DropoutBits, AreNotOfACausalAttention) {
  Steps steps;
  for (const std::size_t i : {0U, 1U, 2U}) steps.attributes(i).causal = true;
  EXPECT_FALSE(hands_over(steps));
}

TEST(Passes, DropoutBitsReplaceRandomNumbers) {
  testing::SmallProgram small;
  const auto leaf = [&] { return small.leaf(DType::bfloat16, matrix); };
  const compile::ValueId query = leaf(), key = leaf(), value = leaf(), of_result = leaf();
  const compile::ValueId delta = small.leaf(DType::float32, {3, 2, 33, 1});
  const compile::ValueId numbers = small.add(Op::uniform, DType::float32, scores, {}, ops::Seed{7});
  const ops::Attention attributes{.scale = 0.5, .dropout = 0.5};
  const compile::ValueId logsumexp =
      small.add(Op::attention_logsumexp, DType::float32, {3, 2, 33, 1}, {query, key}, ops::Attention{.scale = 0.5});
  small.output(small.add(Op::attention, DType::bfloat16, matrix, {query, key, value, numbers}, attributes));
  const auto add = [&](Op op, const compile::Inputs& inputs) {
    small.output(small.add(op, DType::bfloat16, matrix, inputs, attributes));
  };
  add(Op::attention_query_gradient, {query, key, value, of_result, logsumexp, delta, numbers});
  add(Op::attention_key_gradient, {query, key, value, of_result, logsumexp, delta, numbers});
  add(Op::attention_value_gradient, {query, key, of_result, logsumexp, numbers});
  const compile::Plan plan = compile::make_plan(small.program, KnowsBits());
  const auto& gradients = std::get<Primitive>(plan.program.steps.back());
  EXPECT_EQ(gradients.inputs.back().access.dtype, DType::int16);
}

}  // namespace
}  // namespace russet
