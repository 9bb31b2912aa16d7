// The pass gradient_sums: column groups add up sums of an attention's gradients instead of the gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Access;
using compile::Group;
using compile::Instruction;
using compile::Primitive;
using ops::Op;

class AddsUp final : public PlansAlone {
 public:
  bool has_attention(DType) const override { return true; }
  bool computes_gradients_at_once(const Primitive&) const override { return true; }
  bool has_kernel(const Primitive& gradients) const override {
    asked_.push_back(gradients);
    return adds_up_;
  }
  bool adds_up_ = true;
  mutable std::vector<Primitive> asked_;
};

/// [matrices, heads, rows, width], as [matrices * rows, 3 * heads * width] in memory.
constexpr std::int64_t matrices = 4;
constexpr std::int64_t heads = 2;
constexpr std::int64_t rows = 5;
constexpr std::int64_t width = 8;
constexpr std::int64_t part = heads * width;
constexpr std::int64_t line = 3 * part;

enum Place : std::int32_t { joint, sums, other, count };

compile::Operand gradient(std::int64_t offset) {
  return {{joint, DType::bfloat16, offset, -1, {rows * line, width, line, 1}}, {matrices, heads, rows, width}};
}

/// Adds up columns of what `joint` holds.
Group group(std::int64_t first, std::int64_t columns) {
  Group g;
  g.kind = Group::Kind::column;
  g.space = {matrices * rows, columns};
  g.split = 1;
  g.accesses = {Access{joint, DType::bfloat16, first, -1, {line, 1}}, Access{sums, DType::bfloat16, first, -1, {0, 1}}};
  Instruction load;
  load.kind = Instruction::Kind::load;
  load.dtype = DType::bfloat16;
  load.access = 0;
  Instruction sum;
  sum.kind = Instruction::Kind::reduce;
  sum.op = Op::sum;
  sum.dtype = DType::bfloat16;
  sum.extent = compile::Extent::reduced;
  sum.inputs[0] = 0;
  Instruction store;
  store.kind = Instruction::Kind::store;
  store.dtype = DType::bfloat16;
  store.extent = compile::Extent::reduced;
  store.inputs[0] = 1;
  store.access = 1;
  g.code = {load, sum, store};
  return g;
}

/// Gradients of an attention, and the groups after them.
class Steps {
 public:
  explicit Steps(std::vector<Group> groups) {
    Primitive attention;
    attention.op = Op::attention_key_gradient;
    attention.output = gradient(part);
    attention.companions = {{.op = Op::attention_value_gradient, .output = gradient(2 * part)},
                            {.op = Op::attention_query_gradient, .output = gradient(0)}};
    program.steps = {attention};
    for (Group& g : groups) program.steps.emplace_back(std::move(g));
    program.slots.resize(count);
  }
  Primitive& attention() { return std::get<Primitive>(program.steps[0]); }
  Group& sum(std::size_t i) { return std::get<Group>(program.steps[1 + i]); }

  compile::Program program;
};

bool takes_sums(Steps& steps, const AddsUp& target = {}) {
  compile::passes::gradient_sums(steps.program, target);
  return steps.attention().companions.size() == 5;
}

Steps of_joint() { return Steps({group(0, line)}); }
Steps of_parts() { return Steps({group(2 * part, part), group(0, part), group(part, part)}); }

TEST(GradientSums, OfAllByOneGroup) {
  Steps steps = of_joint();
  const AddsUp target;
  ASSERT_TRUE(takes_sums(steps, target));
  ASSERT_EQ(target.asked_.size(), 1U);
  EXPECT_EQ(target.asked_[0].companions.size(), 5U);
  ASSERT_EQ(steps.program.slots.size(), count + 1U);
  EXPECT_EQ(steps.program.slots[count].bytes, static_cast<std::size_t>(matrices * line * 4));
  const std::pair<Op, std::int64_t> wanted[] = {
      {Op::attention_key_gradient, part}, {Op::attention_value_gradient, 2 * part}, {Op::attention_query_gradient, 0}};
  for (std::size_t i = 0; i < 3; ++i) {
    const compile::Companion& companion = steps.attention().companions[2 + i];
    EXPECT_EQ(companion.op, wanted[i].first);
    EXPECT_TRUE(companion.is_sum);
    EXPECT_EQ(companion.output.sizes, (Shape{matrices, heads, 1, width}));
    const Access& access = companion.output.access;
    EXPECT_EQ(access, (Access{count, DType::float32, wanted[i].second, -1, {line, width, line, 1}}));
  }
  EXPECT_EQ(to_string(steps.sum(0)),
            "column [4, 48] split 1\n"
            "  v0 = load float32 full slot 3 + 0 [48, 1]\n"
            "  v1 = reduce sum float32 reduced v0\n"
            "  v2 = compute cast bfloat16 reduced v1\n"
            "  v3 = store bfloat16 reduced v2 slot 1 + 0 [0, 1]\n");
}

TEST(GradientSums, OfEachByItsOwnGroup) {
  Steps steps = of_parts();
  ASSERT_TRUE(takes_sums(steps));
  EXPECT_EQ(steps.program.slots.size(), count + 3U);
  const std::size_t groups[] = {2, 0, 1};  // of key, value and query
  for (std::size_t i = 0; i < 3; ++i) {
    const Access& access = steps.attention().companions[2 + i].output.access;
    EXPECT_EQ(access.offset, 0);
    EXPECT_EQ(access.strides, (Strides{part, width, part, 1}));
    EXPECT_EQ(steps.sum(groups[i]).accesses[0], (Access{access.slot, DType::float32, 0, -1, {part, 1}}));
    EXPECT_EQ(steps.sum(groups[i]).space, (Shape{matrices, part}));
  }
}

TEST(GradientSums, WhatFollowsASumStays) {
  Steps steps = of_joint();
  Instruction negated;
  negated.op = Op::neg;
  negated.dtype = DType::bfloat16;
  negated.extent = compile::Extent::reduced;
  negated.inputs[0] = 1;
  std::vector<Instruction>& code = steps.sum(0).code;
  code.insert(code.begin() + 2, negated);
  code[3].inputs[0] = 2;
  ASSERT_TRUE(takes_sums(steps));
  EXPECT_EQ(steps.sum(0).code[3].inputs[0], 2);
  EXPECT_EQ(steps.sum(0).code[4].inputs[0], 3);
}

TEST(GradientSums, OnlyWhereTheDeviceAddsThemUp) {
  Steps steps = of_joint();
  AddsUp target;
  target.adds_up_ = false;
  const compile::Program before = steps.program;
  EXPECT_FALSE(takes_sums(steps, target));
  EXPECT_EQ(steps.program.steps, before.steps);
  EXPECT_EQ(steps.program.slots.size(), before.slots.size());
  Steps limited = of_joint();
  limited.program.room = 1 << 20;
  EXPECT_FALSE(takes_sums(limited));
}

TEST(GradientSums, AllThreeOrNone) {
  Steps steps({group(2 * part, part), group(0, part)});
  EXPECT_FALSE(takes_sums(steps));
  Steps pair = of_joint();
  pair.attention().companions.pop_back();
  EXPECT_FALSE(takes_sums(pair));
}

/// Whether sums are taken after a change to the joint gradients' only group.
template <class Change>
bool takes_sums_after(Change&& change) {
  Steps steps = of_joint();
  change(steps);
  return takes_sums(steps);
}

TEST(GradientSums, GroupsReadTheGradientsAlone) {
  EXPECT_TRUE(takes_sums_after([](Steps&) {}));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).space[1] += 1; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).space[1] -= 1; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).space[0] -= 1; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).accesses[0].offset = -width; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).accesses[0].slot = other; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).accesses[0].strides[0] += 1; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).accesses[0].strides[1] = 2; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).accesses[0].offset_argument = 0; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.attention().output.access.offset_argument = 0; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.attention().output.access.strides[1] += 1; }));
}

TEST(GradientSums, GroupsAddUpAndNothingElse) {
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).kind = Group::Kind::row; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).split = 2; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).code[1].op = Op::amax; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).code[1].dtype = DType::float32; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).code[0].extent = compile::Extent::reduced; }));
  // Nothing but the sum reads what is loaded, nor does something of the whole space follow.
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).code[2].inputs[0] = 0; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) { s.sum(0).code[2].extent = compile::Extent::full; }));
  EXPECT_FALSE(takes_sums_after([](Steps& s) {
    Instruction again = s.sum(0).code[0];
    again.extent = compile::Extent::reduced;
    s.sum(0).code.push_back(again);
  }));
}

TEST(GradientSums, OfWhatIsStillThere) {
  EXPECT_FALSE(takes_sums_after([](Steps& s) {
    Group overwriting = s.sum(0);
    overwriting.accesses = {Access{other, DType::bfloat16, 0, -1, {line, 1}},
                            Access{joint, DType::bfloat16, 0, -1, {0, 1}}};
    s.program.steps.insert(s.program.steps.begin() + 1, overwriting);
  }));
}

TEST(GradientSums, OfGradientsBeforeTheGroup) {
  Steps steps = of_joint();
  std::swap(steps.program.steps[0], steps.program.steps[1]);
  compile::passes::gradient_sums(steps.program, AddsUp());
  EXPECT_EQ(std::get<Primitive>(steps.program.steps[1]).companions.size(), 2U);
}

TEST(GradientSums, OneGroupOfTwoTakesThem) {
  Steps steps({group(0, line), group(0, line)});
  ASSERT_TRUE(takes_sums(steps));
  EXPECT_EQ(steps.sum(0).space[0], matrices);
  EXPECT_EQ(steps.sum(1).space[0], matrices * rows);
}

TEST(Passes, GradientSumsReplaceGradients) {
  testing::SmallProgram small;
  const Shape sizes{matrices, 1, rows, width};
  const auto matrix = [&] { return small.leaf(DType::bfloat16, sizes); };
  const auto row_numbers = [&] { return small.leaf(DType::float32, {matrices, 1, rows, 1}); };
  const compile::ValueId query = matrix(), key = matrix(), value = matrix(), of_result = matrix();
  const compile::ValueId logsumexp = row_numbers(), delta = row_numbers();
  const ops::Attention attributes{.scale = 0.5};
  const auto add = [&](Op op, const compile::Inputs& inputs) {
    const compile::ValueId found = small.add(op, DType::bfloat16, sizes, inputs, attributes);
    small.output(found);
    small.output(small.add(Op::sum, DType::bfloat16, {1, 1, 1, width}, {found}, ops::Axes{.mask = 0b0111}));
  };
  add(Op::attention_query_gradient, {query, key, value, of_result, logsumexp, delta});
  add(Op::attention_key_gradient, {query, key, value, of_result, logsumexp, delta});
  add(Op::attention_value_gradient, {query, key, of_result, logsumexp});
  const compile::Plan plan = compile::make_plan(small.program, AddsUp());
  ASSERT_EQ(plan.program.steps.size(), 4U);
  EXPECT_EQ(std::get<Primitive>(plan.program.steps[0]).companions.size(), 5U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(std::get<Group>(plan.program.steps[i]).space[0], matrices);
}

}  // namespace
}  // namespace russet
