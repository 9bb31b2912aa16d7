// The pass fold: numbers that scale the channels of a convolution's result are multiplied with its weight.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;
using ops::View;

class PrefersFoldedScales final : public PlansAlone {
 public:
  bool prefers_folded_scales(const compile::Primitive& convolution, bool once) const override {
    return once || numel(convolution.inputs[1].sizes) <= numel(convolution.output.sizes);
  }
};

/// Convolutions in bfloat16 that a batch norm follows, as evaluation computes it. Small integers stay exact.
struct Normalised : testing::SmallProgram {
  const Shape image{2, 2, 3, 3}, result{2, 4, 3, 3};
  ValueId x = leaf(DType::bfloat16, image);

  ValueId of_channels() {
    const ValueId numbers = leaf(DType::float32, {4});
    return add(Op::strided, DType::float32, {1, 4, 1, 1}, {numbers}, View{{0, 1, 0, 0}, 0, false});
  }
  ValueId convolution() {
    const ValueId weight = leaf(DType::bfloat16, {4, 2, 1, 1});
    return add(Op::convolution, DType::bfloat16, result, {x, weight}, ops::Window{});
  }
  ValueId wide(ValueId id) { return add(Op::cast, DType::float32, result, {id}); }
  ValueId narrow(ValueId id) { return add(Op::cast, DType::bfloat16, result, {id}); }
  ValueId times(ValueId a, ValueId b) { return add(Op::mul, DType::float32, result, {a, b}); }
  ValueId plus(ValueId a, ValueId b, DType dtype = DType::float32) { return add(Op::add, dtype, result, {a, b}); }
  /// In float32.
  ValueId normalised(ValueId convolution) { return plus(times(wide(convolution), of_channels()), of_channels()); }
};

std::vector<testing::Values> leaves_of(const compile::Program& program) {
  std::vector<testing::Values> leaves;
  for (const compile::Leaf& leaf : program.leaves) {
    const compile::Value& value = compile::value_at(program, leaf.value);
    leaves.push_back(testing::integers(value.dtype, value.shape, static_cast<int>(leaves.size())));
  }
  return leaves;
}

/// How many values of the result's shape are products, and sums, once the pass has run; the program computes the same.
std::pair<int, int> products_and_sums(compile::Program program, const compile::Target& target = PrefersFoldedScales()) {
  const std::vector<testing::Values> leaves = leaves_of(program);
  const auto expected = testing::evaluate(program, leaves);
  compile::passes::fold(program, target);
  const auto found = testing::evaluate(program, leaves);
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].values, expected[i].values) << i;
  const auto count = [&](Op op) {
    return static_cast<int>(std::ranges::count_if(
        program.values, [&](const compile::Value& value) { return value.op == op && value.shape[0] == 2; }));
  };
  return {count(Op::mul), count(Op::add)};
}

using Counts = std::pair<int, int>;

TEST(Fold, LeavesTheShiftAsABias) {
  Normalised stored;
  stored.output(stored.narrow(stored.normalised(stored.convolution())));
  EXPECT_EQ(products_and_sums(stored.program), Counts(0, 1));
  Normalised in_float32;
  in_float32.output(in_float32.normalised(in_float32.convolution()));
  EXPECT_EQ(products_and_sums(in_float32.program), Counts(0, 1));
}

TEST(Fold, AddsBothShiftsToOneOfTwo) {
  Normalised program;
  const ValueId first = program.narrow(program.normalised(program.convolution()));
  const ValueId second = program.narrow(program.normalised(program.convolution()));
  program.output(program.plus(first, second, DType::bfloat16));
  EXPECT_EQ(products_and_sums(program.program), Counts(0, 2));
  // Not if anything else reads one of them.
  program.output(second);
  EXPECT_EQ(products_and_sums(program.program), Counts(0, 3));
}

// In training the numbers depend on the convolution.
TEST(Fold, LeavesConvolutionsThatOthersRead) {
  Normalised program;
  const ValueId convolution = program.convolution();
  program.output(program.narrow(program.normalised(convolution)));
  program.output(convolution);
  EXPECT_EQ(products_and_sums(program.program), Counts(1, 1));
}

TEST(Fold, LeavesWhatIsNotAChannels) {
  Normalised program;
  const ValueId row = program.leaf(DType::float32, {1, 1, 1, 3});
  program.output(program.narrow(program.plus(program.times(program.wide(program.convolution()), row), row)));
  EXPECT_EQ(products_and_sums(program.program), Counts(1, 1));
  Normalised without_shift;
  without_shift.output(
      without_shift.times(without_shift.wide(without_shift.convolution()), without_shift.of_channels()));
  EXPECT_EQ(products_and_sums(without_shift.program), Counts(1, 0));
}

// Scaling a weight that is larger than the result is worth it where that is done once for many runs.
TEST(Fold, ScalesLargeWeightsThatStay) {
  const auto products = [](bool weight_stays, bool scale_stays) {
    Normalised program;
    const ValueId weight = program.leaf(DType::bfloat16, {4, 3, 1, 1});
    program.program.leaves.back().steady = weight_stays;
    const ValueId x = program.leaf(DType::bfloat16, {2, 3, 1, 1});
    const Shape result{2, 4, 1, 1};
    const ValueId convolution = program.add(Op::convolution, DType::bfloat16, result, {x, weight}, ops::Window{});
    const auto numbers = [&] {
      const ValueId leaf = program.leaf(DType::float32, {1, 4, 1, 1});
      program.program.leaves.back().steady = scale_stays;
      return leaf;
    };
    const ValueId wide = program.add(Op::cast, DType::float32, result, {convolution});
    const ValueId scaled = program.add(Op::mul, DType::float32, result, {wide, numbers()});
    program.output(program.add(Op::add, DType::float32, result, {scaled, numbers()}));
    return products_and_sums(program.program).first;
  };
  EXPECT_EQ(products(true, true), 0);
  EXPECT_EQ(products(true, false), 1);
  EXPECT_EQ(products(false, true), 1);
}

TEST(Fold, ScalesWeightsInFloat32) {
  Normalised program;
  const ValueId x = program.leaf(DType::float32, program.image);
  const ValueId weight = program.leaf(DType::float32, {4, 2, 1, 1});
  const ValueId y = program.add(Op::convolution, DType::float32, program.result, {x, weight}, ops::Window{});
  program.output(program.plus(program.times(y, program.of_channels()), program.of_channels()));
  EXPECT_EQ(products_and_sums(program.program), Counts(0, 1));
}

// A weight of integers has no fractions, and one in float64 more digits than the scale.
TEST(Fold, LeavesOtherTypes) {
  for (const DType type : {DType::float64, DType::int32}) {
    Normalised program;
    const ValueId x = program.leaf(type, program.image);
    const ValueId weight = program.leaf(type, {4, 2, 1, 1});
    const ValueId y = program.add(Op::convolution, type, program.result, {x, weight}, ops::Window{});
    program.output(program.plus(program.times(program.wide(y), program.of_channels()), program.of_channels()));
    EXPECT_EQ(products_and_sums(program.program), Counts(1, 1)) << name_of(type);
  }
}

TEST(Fold, LeavesWhatADeviceDoesNotPrefer) {
  Normalised program;
  program.output(program.narrow(program.normalised(program.convolution())));
  EXPECT_EQ(products_and_sums(program.program, PlansAlone()), Counts(1, 1));
}

TEST(Passes, FoldedScalesTouchTheWeightAlone) {
  Normalised program;
  program.output(program.narrow(program.normalised(program.convolution())));
  const compile::Plan plan = compile::make_plan(program.program, PrefersFoldedScales());
  for (const compile::Step& step : plan.program.steps) {
    const auto* group = std::get_if<compile::Group>(&step);
    if (group == nullptr || numel(group->space) < numel(program.result)) continue;
    EXPECT_EQ(std::ranges::count(group->code, Op::mul, &compile::Instruction::op), 0);
  }
}

}  // namespace
}  // namespace russet
