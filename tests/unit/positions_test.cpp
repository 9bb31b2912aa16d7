// The pass positions: gradients of pools read where the maxima were, if the pool can tell.
#include <gtest/gtest.h>

#include "compile/layouts.h"
#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Primitive;
using compile::Program;
using ops::Op;

class KeepsPositions final : public PlansAlone {
 public:
  bool has_kernel(const Primitive& pool) const override {
    asked_.push_back(pool);
    return keeps_;
  }
  bool keeps_ = true;
  mutable std::vector<Primitive> asked_;
};

enum Place : std::int32_t { image, maxima, gradient, result, other };

/// A pool and its gradient, and a step between them.
class Steps {
 public:
  explicit Steps(const ops::Window& window = {.kernel = {2, 2}, .stride = {2, 2}}, const Shape& large = {2, 3, 4, 6},
                 const Shape& small = {2, 3, 2, 3}) {
    const auto operand = [](std::int32_t slot, const Shape& sizes) {
      return compile::Operand{{slot, DType::bfloat16, 0, -1, compile::channels_last(sizes)}, sizes};
    };
    Primitive pool;
    pool.op = Op::max_pool;
    pool.attributes = window;
    pool.inputs = {operand(image, large), operand(image, large)};
    pool.output = operand(maxima, small);
    Primitive between = pool;
    between.inputs = {operand(maxima, small), operand(maxima, small)};
    between.output = operand(other, small);
    Primitive unpool = pool;
    unpool.op = Op::max_unpool;
    unpool.inputs = {operand(image, large), operand(gradient, small)};
    unpool.output = operand(result, large);
    program.steps = {pool, between, unpool};
    program.slots.resize(5);
  }

  Primitive& step(std::size_t i) { return std::get<Primitive>(program.steps[i]); }
  Primitive& pool() { return step(0); }
  Primitive& between() { return step(1); }
  Primitive& unpool() { return step(2); }

  Program program;
};

bool hands_over(Steps& steps, const KeepsPositions& target = {}) {
  compile::passes::positions(steps.program, target);
  return steps.unpool().inputs[0].access.slot != image;
}

TEST(Positions, AreHandedOver) {
  Steps steps;
  const KeepsPositions target;
  ASSERT_TRUE(hands_over(steps, target));
  ASSERT_EQ(steps.program.slots.size(), 6U);
  EXPECT_EQ(steps.program.slots[5].bytes, 36U);
  ASSERT_EQ(steps.pool().companions.size(), 1U);
  const compile::Operand& positions = steps.pool().companions[0].output;
  EXPECT_EQ(positions.access.slot, 5);
  EXPECT_EQ(positions.access.dtype, DType::uint8);
  EXPECT_EQ(positions.sizes, (Shape{2, 3, 2, 3}));
  EXPECT_EQ(positions.access.strides, compile::channels_last(positions.sizes));
  EXPECT_EQ(steps.unpool().inputs[0], positions);
  ASSERT_EQ(target.asked_.size(), 1U);
  EXPECT_EQ(target.asked_[0].companions.size(), 1U);
}

TEST(Positions, AreStoredOnceForTwoGradients) {
  Steps steps;
  steps.program.steps.push_back(steps.unpool());
  ASSERT_TRUE(hands_over(steps));
  EXPECT_EQ(steps.program.slots.size(), 6U);
  EXPECT_EQ(steps.step(3).inputs[0], steps.unpool().inputs[0]);
}

TEST(Positions, LieAsMaximaDo) {
  Steps steps;
  steps.pool().output.access.strides = contiguous_strides(steps.pool().output.sizes);
  ASSERT_TRUE(hands_over(steps));
  EXPECT_EQ(steps.unpool().inputs[0].access.strides, contiguous_strides({2, 3, 2, 3}));
}

TEST(Positions, AreNotKeptWhereTheDeviceDoesNot) {
  Steps steps;
  KeepsPositions target;
  target.keeps_ = false;
  EXPECT_FALSE(hands_over(steps, target));
  EXPECT_TRUE(steps.pool().companions.empty());
  EXPECT_EQ(steps.program.slots.size(), 5U);
}

TEST(Positions, AreOfTheSamePool) {
  Steps window;
  window.unpool().attributes = ops::Window{.kernel = {2, 3}, .stride = {2, 2}};
  EXPECT_FALSE(hands_over(window));
  Steps chosen;  // from what they are not looked for in
  chosen.pool().inputs[1].access.slot = other;
  EXPECT_FALSE(hands_over(chosen));
  Steps offset;
  offset.unpool().inputs[0].access.offset = 1;
  EXPECT_FALSE(hands_over(offset));
  Steps overwritten;
  overwritten.between().output.access.slot = image;
  EXPECT_FALSE(hands_over(overwritten));
}

// Where memory is limited, they need room if the image stays for others, as it does after the last gradient that reads
// it.
TEST(Positions, FitTheRoomThatThereIs) {
  const auto limited = [](bool image_stays, std::size_t room) {
    Steps steps;
    steps.program.slots[image].bytes = 288;
    steps.program.slots[result].bytes = 288;
    for (const Place small : {maxima, gradient, other}) steps.program.slots[small].bytes = 72;
    if (image_stays) {
      Primitive later = steps.between();
      later.inputs = {steps.unpool().inputs[0]};
      steps.program.steps.emplace_back(later);
    }
    steps.program.room = room;
    return steps;
  };
  // While the gradient runs, there are the image, the pool's gradient, the result, and what lies between.
  Steps gone = limited(false, 0);
  EXPECT_TRUE(hands_over(gone));
  Steps stays = limited(true, 720);
  EXPECT_FALSE(hands_over(stays));
  Steps fits = limited(true, 1000);
  EXPECT_TRUE(hands_over(fits));
}

TEST(Positions, AreBytesAndToldFromImages) {
  Steps large({.kernel = {16, 16}, .stride = {2, 2}}, {1, 3, 16, 18}, {1, 3, 1, 2});
  EXPECT_FALSE(hands_over(large));
  Steps single({}, {2, 3, 4, 6}, {2, 3, 4, 6});
  EXPECT_FALSE(hands_over(single));
}

TEST(Passes, PositionsReplaceTheImage) {
  testing::SmallProgram small;
  const ops::Window window{.kernel = {2, 2}, .stride = {2, 2}};
  const compile::ValueId x = small.leaf(DType::float32, {2, 3, 4, 6});
  const compile::ValueId g = small.leaf(DType::float32, {2, 3, 2, 3});
  small.output(small.add(Op::max_pool, DType::float32, {2, 3, 2, 3}, {x, x}, window));
  small.output(small.add(Op::max_unpool, DType::float32, {2, 3, 4, 6}, {x, g}, window));
  const compile::Plan plan = compile::make_plan(small.program, KeepsPositions());
  ASSERT_EQ(plan.program.steps.size(), 2U);
  const auto* unpool = std::get_if<Primitive>(&plan.program.steps[1]);
  ASSERT_NE(unpool, nullptr);
  EXPECT_EQ(unpool->inputs[0].access.dtype, DType::uint8);
}

}  // namespace
}  // namespace russet
