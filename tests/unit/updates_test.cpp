// The pass updates: puts change arrays in their place where nobody needs them as they were.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Primitive;
using compile::Program;
using compile::Slot;
using ops::Op;

enum Place : std::int32_t { base, values, index, result, read };

/// A put whose base and result are temporaries, and a step that reads the result.
class Steps {
 public:
  Steps() {
    Primitive make;
    make.op = Op::max_pool;
    make.inputs = {operand(values)};
    make.output = operand(base);
    Primitive put;
    put.op = Op::put;
    put.attributes = ops::Indexing{};
    put.inputs = {operand(base), operand(values), operand(index)};
    put.output = operand(result);
    Primitive reader = make;
    reader.inputs = {operand(result)};
    reader.output = operand(read);
    program.steps = {make, put, reader};
    program.slots.resize(5);
    for (Slot& slot : program.slots) slot.bytes = 48;
    for (const Place leaf : {values, index}) program.slots[leaf].kind = Slot::Kind::leaf;
  }

  static compile::Operand operand(std::int32_t slot) {
    return {{slot, DType::float32, 0, -1, contiguous_strides({3, 4})}, {3, 4}};
  }
  Primitive& step(std::size_t i) { return std::get<Primitive>(program.steps[i]); }
  Primitive& put() { return step(1); }

  Program program;
};

bool changes_in_place(Steps& steps) {
  compile::passes::updates(steps.program, PlansAlone());
  return steps.put().output.access.slot == base;
}

TEST(Updates, ChangeWhatNobodyNeeds) {
  Steps steps;
  ASSERT_TRUE(changes_in_place(steps));
  EXPECT_EQ(steps.put().inputs[0].access.slot, base);
  EXPECT_EQ(steps.step(2).inputs[0].access.slot, base);
  EXPECT_EQ(steps.step(2).output.access.slot, read);
}

TEST(Updates, FollowEachOther) {
  Steps steps;
  steps.program.slots.emplace_back().bytes = 48;
  Primitive second = steps.put();
  second.inputs[0] = Steps::operand(result);
  second.output = Steps::operand(5);
  steps.program.steps.insert(steps.program.steps.begin() + 2, second);
  steps.step(3).inputs[0] = Steps::operand(5);
  ASSERT_TRUE(changes_in_place(steps));
  EXPECT_EQ(steps.step(2).output.access.slot, base);
  EXPECT_EQ(steps.step(3).inputs[0].access.slot, base);
}

TEST(Updates, LeaveWhatIsReadAgain) {
  Steps later;
  later.step(2).inputs.push_back(Steps::operand(base));
  EXPECT_FALSE(changes_in_place(later));
  Steps twice;  // as its own values, too
  twice.put().inputs[1] = Steps::operand(base);
  EXPECT_FALSE(changes_in_place(twice));
}

TEST(Updates, LeaveWhatIsNoTemporary) {
  for (const Place place : {base, result}) {
    for (const Slot::Kind kind : {Slot::Kind::leaf, Slot::Kind::output}) {
      Steps steps;
      steps.program.slots[place].kind = kind;
      EXPECT_FALSE(changes_in_place(steps));
    }
  }
}

TEST(Updates, LeaveWhatLiesInAnotherWay) {
  Steps transposed;
  transposed.put().output.access.strides = {1, 3};
  EXPECT_FALSE(changes_in_place(transposed));
  Steps larger;
  larger.program.slots[result].bytes = 64;
  EXPECT_FALSE(changes_in_place(larger));
}

TEST(Passes, APutChangesZerosInPlace) {
  testing::SmallProgram small;
  const compile::ValueId zero = small.add(Op::constant, DType::float32, {3, 4}, {}, ops::Number{});
  const compile::ValueId x = small.leaf(DType::float32, {2, 4});
  const compile::ValueId rows = small.leaf(DType::int64, {2});
  ops::Indexing indexing;
  indexing.lead = {2};
  indexing.axes = 1;
  const compile::ValueId put = small.add(Op::put, DType::float32, {3, 4}, {zero, x, rows}, indexing);
  small.output(small.add(Op::mul, DType::float32, {3, 4}, {put, put}));
  const compile::Plan plan = compile::make_plan(small.program, PlansAlone());
  bool found = false;
  for (const compile::Step& step : plan.program.steps) {
    if (const auto* primitive = std::get_if<Primitive>(&step); primitive != nullptr && primitive->op == Op::put) {
      found = true;
      EXPECT_EQ(primitive->inputs[0].access.slot, primitive->output.access.slot);
    }
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace russet
