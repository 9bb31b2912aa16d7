// The pass hoist: what an evaluation computes of parameters alone is a program of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/plan.h"
#include "compile/steady.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Plan;
using compile::Slot;
using compile::ValueId;
using ops::Op;

constexpr std::int64_t n = 256;
const Shape square{n, n};
constexpr std::size_t narrow_bytes = n * n * 2;

/// y = x . w in bfloat16, of an x that is bfloat16 and a w that is a parameter in float32.
struct Product : testing::SmallProgram {
  ValueId x = leaf(DType::bfloat16, square);
  ValueId w = parameter();

  ValueId parameter(DType dtype = DType::float32) {
    const ValueId id = leaf(dtype, square);
    program.leaves.back().steady = true;
    return id;
  }
  ValueId narrow(ValueId id) { return add(Op::cast, DType::bfloat16, square, {id}); }
  ValueId times(ValueId a, ValueId b) { return add(Op::matmul, DType::bfloat16, square, {a, b}); }
  Plan plan(std::optional<std::size_t> room = {}) const { return compile::make_plan(program, PlansAlone(), room); }
};

std::size_t count(const Plan& plan, Slot::Kind kind) {
  return static_cast<std::size_t>(std::ranges::count(plan.program.slots, kind, &Slot::kind));
}

TEST(Hoist, WhatDependsOnParametersAloneIsPrepared) {
  Product program;
  program.output(program.times(program.x, program.narrow(program.w)));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.preparation->program.steps.size(), 1U);
  EXPECT_EQ(plan.preparation->program.outputs.size(), 1U);
  EXPECT_EQ(plan.preparation->output_bytes, narrow_bytes);
  EXPECT_EQ(plan.program.steps.size(), 1U);
  EXPECT_EQ(count(plan, Slot::Kind::prepared), 1U);
  EXPECT_EQ(plan.total_bytes, 2 * narrow_bytes) << "the result, and what is prepared";
  EXPECT_TRUE(plan.prepared_arguments.empty());
}

TEST(Hoist, NothingIsWhereNoParameterIsSteady) {
  Product program;
  program.program.leaves.back().steady = false;
  program.output(program.times(program.x, program.narrow(program.w)));
  EXPECT_EQ(program.plan().preparation, nullptr);
}

TEST(Hoist, WhatIsUpdatedIsNot) {
  Product program;
  program.program.leaves.back().donatable = true;
  program.output(program.times(program.x, program.narrow(program.w)));
  EXPECT_EQ(program.plan().preparation, nullptr);
}

TEST(Hoist, OutputsAndWhatReadsOthersStay) {
  Product program;
  program.output(program.narrow(program.w));  // of parameters alone, but the work's own
  const ValueId both = program.add(Op::mul, DType::bfloat16, square, {program.x, program.narrow(program.parameter())});
  program.output(program.times(program.x, both));
  const Plan plan = program.plan();
  ASSERT_EQ(plan.preparation, nullptr);
  EXPECT_EQ(plan.output_bytes, 2 * narrow_bytes);
}

TEST(Hoist, ChainsKeepTheirLastValueAlone) {
  Product program;
  const ValueId squared = program.times(program.narrow(program.w), program.narrow(program.w));
  program.output(program.times(program.x, squared));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.preparation->program.steps.size(), 2U);
  EXPECT_EQ(plan.preparation->output_bytes, narrow_bytes);
  EXPECT_EQ(plan.preparation->program.arena_bytes, narrow_bytes) << "the cast";
  EXPECT_EQ(plan.program.arena_bytes, 0U);
  EXPECT_EQ(plan.total_bytes, 3 * narrow_bytes) << "the cast and the square, then the result in place of the cast";
}

TEST(Hoist, WhatSeveralStepsReadIsKeptOnce) {
  Product program;
  const ValueId narrow = program.narrow(program.w);
  program.output(program.times(program.x, narrow));
  program.output(program.times(narrow, program.x));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.preparation->program.outputs.size(), 1U);
}

// Nobody may be told that what was prepared before is undefined.
TEST(Hoist, NothingThatIsPreparedBeginsWithAStep) {
  Product program;
  program.output(program.times(program.x, program.narrow(program.w)));
  const Plan plan = program.plan();
  for (const std::vector<std::int32_t>& born : plan.births) {
    for (const std::int32_t slot : born) {
      EXPECT_NE(plan.program.slots[static_cast<std::size_t>(slot)].kind, Slot::Kind::prepared);
    }
  }
}

TEST(Hoist, NumbersAloneAreComputedWithTheOthers) {
  Product program;
  program.program.leaves.back().steady = false;
  const ValueId table = program.add(Op::iota, DType::bfloat16, square, {}, ops::View{{n, 1}, 0, false});
  program.output(program.times(program.x, table));
  EXPECT_EQ(program.plan().preparation, nullptr);
}

/// A device that shares launches.
class SharesLaunches final : public PlansAlone {
 public:
  compile::Sharing sharing(const compile::Step& step) const override {
    return std::holds_alternative<compile::Group>(step) ? compile::Sharing{"group", "one"} : compile::Sharing{};
  }
  compile::BundleLimits bundle_limits() const override { return {.members = 8, .codes = 8}; }
};

TEST(Hoist, PreparationsArePlannedLikeOtherPrograms) {
  Product program;
  const ValueId first = program.times(program.x, program.narrow(program.w));
  program.output(program.times(first, program.narrow(program.parameter())));
  const Plan plan = compile::make_plan(program.program, SharesLaunches());
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.preparation->program.steps.size(), 1U);
}

TEST(Hoist, RandomNumbersAreOfEachRun) {
  Product program;
  const ValueId noise = program.add(Op::uniform, DType::float32, square, {}, ops::Seed{});
  program.program.values.back().argument = program.program.arguments++;
  const ValueId noisy = program.add(Op::add, DType::float32, square, {program.w, noise});
  program.output(program.times(program.x, program.narrow(noisy)));
  EXPECT_EQ(program.plan().preparation, nullptr);
}

TEST(Hoist, NumbersOfARunAreNoted) {
  Product program;
  program.program.arguments = 3;
  const ValueId factor = program.add(Op::scalar, DType::float32, {}, {});
  program.program.values.back().argument = 2;
  const ValueId scaled = program.add(Op::mul, DType::float32, square, {program.w, factor});
  program.output(program.times(program.x, program.narrow(scaled)));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.prepared_arguments, std::vector<std::int32_t>{2});
}

TEST(Hoist, WhatMayFailIsNotPrepared) {
  Product program;
  const ValueId positive = program.add(Op::matmul, DType::float32, square, {program.w, program.w});
  const ValueId factor = program.add(Op::cholesky, DType::float32, square, {positive}, ops::Linalg{});
  program.output(program.times(program.x, program.narrow(factor)));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  EXPECT_EQ(plan.preparation->program.steps.size(), 1U) << "the product";
}

// What is prepared stays, so it may not lie where a value of this run did.
TEST(Hoist, ResultsHaveMemoryOfTheirOwn) {
  Product program;
  program.program.leaves.front().donatable = true;
  program.output(program.times(program.x, program.narrow(program.w)));
  const Plan plan = program.plan();
  ASSERT_NE(plan.preparation, nullptr);
  for (const compile::Output& output : plan.preparation->program.outputs) EXPECT_EQ(output.donor, -1);
}

TEST(Hoist, NothingIsWhereItDoesNotFit) {
  // The second cast takes the place of the first one unless both are kept.
  Product program;
  const ValueId hidden = program.times(program.x, program.narrow(program.w));
  program.output(program.times(hidden, program.narrow(program.parameter())));
  EXPECT_NE(program.plan(4 * narrow_bytes).preparation, nullptr);
  const Plan smaller = program.plan(3 * narrow_bytes);
  EXPECT_EQ(smaller.preparation, nullptr);
  EXPECT_EQ(smaller.program.steps.size(), 4U);
  EXPECT_LE(smaller.total_bytes, 3 * narrow_bytes);
}

/// A device whose contractions take any prologue.
class TakesPrologues final : public PlansAlone {
 public:
  bool takes_prologues() const override { return true; }
  bool accepts_epilogue(const compile::Primitive&) const override { return true; }
};

// A product computes an element of a prologue once for each tile that reads it, in each run.
TEST(Hoist, IsPreferredToAPrologue) {
  for (const bool steady : {false, true}) {
    Product program;
    program.program.leaves.back().steady = steady;
    program.output(program.times(program.x, program.narrow(program.w)));
    const Plan plan = compile::make_plan(program.program, TakesPrologues());
    EXPECT_EQ(plan.preparation != nullptr, steady);
    EXPECT_EQ(plan.program.steps.size(), 1U);
  }
}

/// Steps over slots: a parameter's, another leaf's, and so many temporaries.
struct Steps {
  enum : std::int32_t { parameter, other, temporary };
  compile::Program program;

  explicit Steps(int temporaries) {
    program.leaves = {{0, false, true}, {1, false, false}};
    for (int i = 0; i < temporaries + 2; ++i) {
      const bool is_leaf = i < temporary;
      program.slots.push_back({is_leaf ? Slot::Kind::leaf : Slot::Kind::temporary, is_leaf ? i : -1, narrow_bytes});
    }
  }
  static compile::Access at(std::int32_t slot) { return {slot, DType::bfloat16, 0, -1, {n, 1}}; }
  static compile::Group copy(std::int32_t from, std::int32_t to) {
    compile::Group group;
    group.space = square;
    group.split = 2;
    group.accesses = {at(from), at(to)};
    group.code.resize(2);
    group.code[0].kind = compile::Instruction::Kind::load;
    group.code[0].access = 0;
    group.code[1].kind = compile::Instruction::Kind::store;
    group.code[1].access = 1;
    group.code[1].inputs[0] = 0;
    return group;
  }
  static compile::Primitive product(std::int32_t a, std::int32_t b, std::int32_t to) {
    compile::Primitive primitive;
    primitive.op = Op::matmul;
    primitive.inputs = {{at(a), square}, {at(b), square}};
    primitive.output = {at(to), square};
    return primitive;
  }
  std::vector<bool> steady() const { return compile::steady_steps(program, PlansAlone()); }
};

TEST(SteadySteps, WriteNothingThatOthersWrite) {
  enum : std::int32_t { both = Steps::temporary, copied, own };
  Steps steps(3);
  steps.program.steps = {Steps::copy(Steps::parameter, both), Steps::copy(both, copied),
                         Steps::copy(Steps::other, both), Steps::copy(Steps::parameter, own)};
  EXPECT_EQ(steps.steady(), (std::vector<bool>{false, false, false, true}));
}

TEST(SteadySteps, DrawNothing) {
  Steps steps(1);
  compile::Primitive attention = Steps::product(Steps::parameter, Steps::parameter, Steps::temporary);
  steps.program.steps = {attention};
  EXPECT_EQ(steps.steady(), std::vector<bool>{true});
  attention.inputs.push_back({{-1, DType::float32, 0, 0, {}}, {}});
  steps.program.steps = {attention};
  EXPECT_EQ(steps.steady(), std::vector<bool>{false});
}

TEST(Arguments, OfStepsAreListedOnce) {
  compile::Group group = Steps::copy(0, 1);
  group.accesses[0].offset_argument = 7;
  group.code[0].argument = 3;
  compile::Primitive primitive = Steps::product(0, 1, 2);
  primitive.argument = 5;
  primitive.inputs[1].access.offset_argument = 3;
  primitive.output.access.offset_argument = 1;
  primitive.epilogue = group;
  primitive.prologues[1] = Steps::copy(0, 1);
  primitive.prologues[1].code[0].argument = 11;
  primitive.companions.push_back({Op::matmul, {{4, DType::float32, 0, 9, {}}, {}}});
  EXPECT_EQ(compile::arguments_of({group}), (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(compile::arguments_of({primitive}), (std::vector<std::int32_t>{1, 3, 5, 7, 9, 11}));
  compile::Stage stage;
  stage.whole = primitive;
  EXPECT_EQ(compile::arguments_of({stage}), compile::arguments_of({primitive}));
}

TEST(SteadyValues, AreOfSteadyLeavesAndNumbers) {
  Product program;
  const ValueId one = program.add(Op::constant, DType::float32, {}, {}, ops::Number{1, 0});
  const ValueId more = program.add(Op::add, DType::float32, square, {program.w, one});
  const ValueId number = program.add(Op::add, DType::float32, {}, {one, one});
  const ValueId mixed = program.add(Op::add, DType::bfloat16, square, {program.narrow(more), program.x});
  const std::vector<bool> steady = compile::steady_values(program.program);
  const auto is_steady = [&](ValueId id) { return steady[static_cast<std::size_t>(id)]; };
  EXPECT_TRUE(is_steady(program.w));
  EXPECT_TRUE(is_steady(more));
  EXPECT_FALSE(is_steady(program.x));
  EXPECT_FALSE(is_steady(number));
  EXPECT_FALSE(is_steady(mixed));
}

}  // namespace
}  // namespace russet
