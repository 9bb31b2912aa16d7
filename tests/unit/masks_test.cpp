// The pass masks: booleans that groups leave for groups are stored four to a byte.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "group_builder.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Primitive;
using compile::Program;
using ops::Op;
using test::Builder;

class PacksMasks final : public PlansAlone {
 public:
  bool packs_masks(const Group& group) const override {
    ++asked_;
    return asked_ != refused_ && std::ranges::any_of(group.accesses, &Access::packed);
  }
  int refused_ = 0;  // the group that it does not take, counted from 1
  mutable int asked_ = 0;
};

enum Place : std::int32_t { x, mask, y, z };
constexpr std::int64_t rows = 300, columns = 400;

/// A group that stores a mask, and one that reads it.
struct Steps {
  Steps() {
    Builder writes(Group::Kind::elementwise, {rows, columns}, 2);
    const auto number = writes.load(x, DType::float32, {columns, 1});
    writes.store(writes.compute(Op::lt, DType::boolean, writes.constant(DType::float32, 0, 0), number), mask,
                 {columns, 1});
    Builder reads(Group::Kind::elementwise, {rows, columns}, 2);
    const auto chosen = reads.load(mask, DType::boolean, {columns, 1});
    const auto other = reads.load(y, DType::float32, {columns, 1});
    reads.store(reads.compute(Op::where, DType::float32, chosen, other, reads.constant(DType::float32, 0, 0)), z,
                {columns, 1});
    program.steps = {writes.group, reads.group};
    program.slots.resize(4);
    for (compile::Slot& slot : program.slots) slot.bytes = rows * columns * 4;
    program.slots[mask].bytes = rows * columns;
  }

  Access& written() { return std::get<Group>(program.steps[0]).accesses[1]; }
  Access& read() { return std::get<Group>(program.steps[1]).accesses[0]; }

  Program program;
};

bool packs(Steps& steps, const PacksMasks& target = {}) {
  compile::passes::masks(steps.program, target);
  const bool is_packed = steps.program.slots[mask].bytes == rows * columns / 4;
  EXPECT_EQ(steps.written().packed, is_packed);
  EXPECT_EQ(steps.read().packed, is_packed);
  if (!is_packed) {
    EXPECT_EQ(steps.program.slots[mask].bytes, rows * columns);
  }
  return is_packed;
}

TEST(Masks, AreStoredFourToAByte) {
  Steps steps;
  const PacksMasks target;
  EXPECT_TRUE(packs(steps, target));
  EXPECT_EQ(target.asked_, 2);
  EXPECT_FALSE(std::get<Group>(steps.program.steps[0]).accesses[0].packed);
  EXPECT_FALSE(std::get<Group>(steps.program.steps[1]).accesses[1].packed);
  EXPECT_EQ(steps.program.slots[x].bytes, rows * columns * 4);
  EXPECT_EQ(compile::bytes_of(steps.program.steps[0]), rows * columns * 4 + rows * columns / 4);
  Steps plain;
  EXPECT_NE(compile::code_of(std::get<Group>(steps.program.steps[0])),
            compile::code_of(std::get<Group>(plain.program.steps[0])));
}

/// As the gradient of a sum is chosen where a convolution ends.
TEST(Masks, AreReadByWhatFollowsAPrimitive) {
  Steps steps;
  Primitive product;
  product.op = Op::matmul;
  product.output = {{z, DType::float32, 0, -1, {columns, 1}}, {rows, columns}};
  product.epilogue = std::get<Group>(steps.program.steps[1]);
  steps.program.steps.push_back(product);
  EXPECT_TRUE(packs(steps));
  EXPECT_TRUE(std::get<Primitive>(steps.program.steps[2]).epilogue.accesses[0].packed);
  Steps before;
  product.epilogue = {};
  product.prologues[1] = std::get<Group>(before.program.steps[1]);
  before.program.steps.push_back(product);
  EXPECT_TRUE(packs(before));
  EXPECT_TRUE(std::get<Primitive>(before.program.steps[2]).prologues[1].accesses[0].packed);
}

TEST(Masks, AreNotPackedWhereTheDeviceRunsNoSuchGroup) {
  for (const int refused : {1, 2}) {
    Steps steps;
    PacksMasks target;
    target.refused_ = refused;
    EXPECT_FALSE(packs(steps, target));
  }
}

TEST(Masks, ArePackedForGroupsAlone) {
  const auto expect_not = [](const auto& change) {
    Steps steps;
    Primitive copies;
    copies.op = Op::matmul;
    copies.inputs = {{{x, DType::float32, 0, -1, {columns, 1}}, {rows, columns}}};
    copies.output = {{z, DType::float32, 0, -1, {columns, 1}}, {rows, columns}};
    change(copies);
    steps.program.steps.push_back(copies);
    EXPECT_FALSE(packs(steps));
  };
  const compile::Operand as_operand{{mask, DType::boolean, 0, -1, {columns, 1}}, {rows, columns}};
  expect_not([&](Primitive& copies) { copies.inputs.push_back(as_operand); });
  expect_not([&](Primitive& copies) { copies.output = as_operand; });
  expect_not([&](Primitive& copies) { copies.companions.push_back({Op::argmax, as_operand}); });
}

TEST(Masks, AreTemporaryAndLarge) {
  Steps output;
  output.program.slots[mask].kind = compile::Slot::Kind::output;
  EXPECT_FALSE(packs(output));
  Steps small;
  constexpr std::int64_t few = 100;
  for (compile::Step& step : small.program.steps) {
    auto& group = std::get<Group>(step);
    group.space = {few, columns};
  }
  small.program.slots[mask].bytes = few * columns;
  compile::passes::masks(small.program, PacksMasks());
  EXPECT_EQ(small.program.slots[mask].bytes, few * columns);
  EXPECT_FALSE(small.read().packed);
}

/// So that four neighbours of the array are a byte for all who touch it.
TEST(Masks, AreCountedFromTheirStart) {
  Steps offset;
  offset.read().offset = 1;
  EXPECT_FALSE(packs(offset));
  Steps argument;
  argument.read().offset_argument = 0;
  EXPECT_FALSE(packs(argument));
  Steps mirrored;
  mirrored.read().strides = {-columns, 1};
  EXPECT_FALSE(packs(mirrored));
  Steps bits;  // that are numbers to somebody
  bits.read().dtype = DType::uint8;
  EXPECT_FALSE(packs(bits));
  Steps transposed;
  transposed.read().strides = {1, rows};
  EXPECT_TRUE(packs(transposed));
}

/// By one group, each element once.
TEST(Masks, AreStoredWhole) {
  Steps gaps;
  gaps.written().strides = {columns + 4, 1};
  EXPECT_FALSE(packs(gaps));
  Steps part;
  std::get<Group>(part.program.steps[0]).space = {rows / 2, columns};
  EXPECT_FALSE(packs(part));
  Steps ends;
  std::get<Group>(ends.program.steps[0]).space = {2, columns};
  ends.written().strides = {(rows - 1) * columns, 1};
  EXPECT_FALSE(packs(ends));
  Steps repeated;
  repeated.written().strides = {0, 1};
  EXPECT_FALSE(packs(repeated));
  Steps twice;
  twice.program.steps.push_back(twice.program.steps[0]);
  EXPECT_FALSE(packs(twice));
  Steps epilogue;
  Primitive product;
  product.op = Op::matmul;
  product.output = {{z, DType::float32, 0, -1, {columns, 1}}, {rows, columns}};
  product.epilogue = std::get<Group>(epilogue.program.steps[0]);
  epilogue.program.steps[0] = std::get<Group>(epilogue.program.steps[1]);
  epilogue.program.steps.push_back(product);
  compile::passes::masks(epilogue.program, PacksMasks());
  EXPECT_EQ(epilogue.program.slots[mask].bytes, rows * columns);
}

/// Where a relu of a sum was positive is stored for what comes after a product of it.
TEST(Passes, MasksArePacked) {
  testing::SmallProgram small;
  const Shape shape{512, 512};
  compile::ValueId sum = small.leaf(DType::float32, shape);
  for (int i = 0; i < 4; ++i) sum = small.add(Op::add, DType::float32, shape, {sum, small.leaf(DType::float32, shape)});
  const auto zero = small.add(Op::constant, DType::float32, shape, {}, ops::Number{0, 0});
  const auto positive = small.add(Op::lt, DType::boolean, shape, {zero, sum});
  const auto relu = small.add(Op::maximum, DType::float32, shape, {sum, zero});
  const auto product = small.add(Op::matmul, DType::float32, shape, {relu, relu});
  small.output(small.add(Op::where, DType::float32, shape, {positive, product, zero}));
  const compile::Plan plan = compile::make_plan(small.program, PacksMasks());
  int packed = 0;
  for (const compile::Step& step : plan.program.steps) {
    if (const auto* group = std::get_if<Group>(&step))
      packed += std::ranges::count_if(group->accesses, &Access::packed);
  }
  EXPECT_EQ(packed, 2);
}

}  // namespace
}  // namespace russet
