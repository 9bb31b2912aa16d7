// The pass pieces: sums of arrays that hold something in a part of their own each.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "graph/strided.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;
using ops::View;

const Shape whole{4, 6};

/// The sum of columns of `widths` at `starts`, put into zeros of [4, 6] each.
testing::SmallProgram sum_of_columns(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& widths) {
  testing::SmallProgram small;
  ValueId sum = -1;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const ValueId columns = small.leaf(DType::float32, {whole[0], widths[i]});
    const ValueId zeros = small.add(Op::constant, DType::float32, whole, {}, ops::Number{});
    const ValueId put =
        small.add(Op::overwrite, DType::float32, whole, {zeros, columns}, View{{6, 1}, starts[i], false});
    sum = sum < 0 ? put : small.add(Op::add, DType::float32, whole, {sum, put});
  }
  small.output(sum);
  return small;
}

std::vector<testing::Values> leaves_of(const compile::Program& program) {
  std::vector<testing::Values> leaves;
  for (const compile::Leaf& leaf : program.leaves) {
    const Shape& shape = compile::value_at(program, leaf.value).shape;
    leaves.push_back(testing::integers(DType::float32, shape, static_cast<int>(leaves.size())));
  }
  return leaves;
}

int count(const compile::Program& program, Op op) {
  return static_cast<int>(std::ranges::count(program.values, op, &compile::Value::op));
}

/// Runs the pass and checks that results stay; the program after it.
compile::Program after(compile::Program program) {
  const std::vector<testing::Values> leaves = leaves_of(program);
  const auto expected = testing::evaluate(program, leaves);
  compile::passes::pieces(program, PlansAlone());
  const auto found = testing::evaluate(program, leaves);
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].values, expected[i].values);
  return program;
}

TEST(Pieces, ThatFillAWholeNeedNoZeros) {
  const compile::Program program = after(sum_of_columns({4, 0, 1}, {2, 1, 3}).program);
  EXPECT_EQ(count(program, Op::add), 0);
  EXPECT_EQ(count(program, Op::constant), 0);
  EXPECT_EQ(count(program, Op::empty), 1);
  EXPECT_EQ(count(program, Op::overwrite), 3);
}

TEST(Pieces, ThatLeaveAGapAreWrittenIntoZeros) {
  const compile::Program program = after(sum_of_columns({4, 0}, {2, 3}).program);
  EXPECT_EQ(count(program, Op::add), 0);
  EXPECT_EQ(count(program, Op::constant), 1);
  EXPECT_EQ(count(program, Op::empty), 0);
}

TEST(Pieces, ThatOverlapAreAddedUp) {
  EXPECT_EQ(count(after(sum_of_columns({0, 2}, {3, 4}).program), Op::add), 1);
  // The third overlaps the first alone.
  EXPECT_EQ(count(after(sum_of_columns({0, 3, 1}, {3, 3, 2}).program), Op::add), 1);
}

TEST(Pieces, ThatAreReadThemselvesStay) {
  testing::SmallProgram small = sum_of_columns({4, 0}, {2, 4});
  const auto put = std::ranges::find(small.program.values, Op::overwrite, &compile::Value::op);
  small.output(static_cast<ValueId>(put - small.program.values.begin()));
  EXPECT_EQ(count(after(small.program), Op::add), 1);
}

TEST(Pieces, AreNoOverwritesOfOtherNumbers) {
  testing::SmallProgram small = sum_of_columns({4, 0}, {2, 4});
  for (compile::Value& value : small.program.values) {
    if (value.op == Op::constant) value.attributes = ops::Number{.real = 1};
  }
  EXPECT_EQ(count(after(small.program), Op::add), 1);
}

TEST(Passes, PiecesAreWrittenWhereTheyBelong) {
  const compile::Plan plan = compile::make_plan(sum_of_columns({4, 0, 1}, {2, 1, 3}).program, PlansAlone());
  EXPECT_EQ(plan.program.steps.size(), 3U);
  EXPECT_EQ(plan.moved_bytes, 2 * sizeof(float) * static_cast<std::size_t>(numel(whole)));
}

bool are_disjoint(const View& a, const Shape& a_sizes, const View& b, const Shape& b_sizes) {
  const bool one = graph::are_disjoint(a, a_sizes, b, b_sizes);
  EXPECT_EQ(one, graph::are_disjoint(b, b_sizes, a, a_sizes));
  return one;
}

/// Compares with every element of both.
TEST(Views, AreDisjointIfTheyShareNoElement) {
  int disjoint = 0;
  for (int number = 0; number < 4000; ++number) {
    std::uint32_t state = static_cast<std::uint32_t>(number) * 2654435761U + 1;
    const auto draw = [&](std::uint32_t below) {
      state = state * 1664525U + 1013904223U;
      return static_cast<std::int64_t>((state >> 16) % below);
    };
    std::array<View, 2> views;
    std::array<Shape, 2> sizes;
    std::array<std::vector<bool>, 2> seen{std::vector<bool>(400), std::vector<bool>(400)};
    for (std::size_t i = 0; i < 2; ++i) {
      sizes[i] = {draw(4) + 1, draw(4) + 1, draw(3) + 1};
      views[i] = {{draw(30) + 1, draw(12) + 1, draw(4) + 1}, draw(60), false};
      for (std::int64_t a = 0; a < sizes[i][0]; ++a) {
        for (std::int64_t b = 0; b < sizes[i][1]; ++b) {
          for (std::int64_t c = 0; c < sizes[i][2]; ++c) {
            const Strides& strides = views[i].strides;
            seen[i][static_cast<std::size_t>(views[i].offset + a * strides[0] + b * strides[1] + c * strides[2])] =
                true;
          }
        }
      }
    }
    bool shared = false;
    for (std::size_t at = 0; at < 400; ++at) shared |= seen[0][at] && seen[1][at];
    EXPECT_EQ(are_disjoint(views[0], sizes[0], views[1], sizes[1]), !shared) << number;
    disjoint += shared ? 0 : 1;
  }
  EXPECT_GT(disjoint, 500);
}

TEST(Views, ThatMoveOrRunBackwardsAreNotKnownToBeDisjoint) {
  EXPECT_TRUE(are_disjoint({{1}, 0, false}, {3}, {{1}, 3, false}, {3}));
  EXPECT_FALSE(are_disjoint({{1}, 0, true}, {3}, {{1}, 3, false}, {3}));
  EXPECT_FALSE(are_disjoint({{-1}, 2, false}, {3}, {{1}, 3, false}, {3}));
  EXPECT_TRUE(are_disjoint({{1}, 0, false}, {0}, {{1}, 0, false}, {3}));
}

}  // namespace
}  // namespace russet
