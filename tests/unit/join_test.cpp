// The pass join: products that share a factor, or that are added up, become one with the same results.
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

class JoinsProducts final : public PlansAlone {
 public:
  bool joins_products(const compile::Primitive&) const override { return true; }
};

/// A program of matrices.
struct Matrices : testing::SmallProgram {
  ValueId matrix(std::int64_t rows, std::int64_t columns) { return leaf(DType::float32, {rows, columns}); }
  const Shape& shape(ValueId id) const { return compile::value_at(program, id).shape; }

  ValueId transpose(ValueId x) {
    const Shape& sizes = shape(x);
    return add(Op::strided, DType::float32, {sizes[1], sizes[0]}, {x}, View{{1, sizes[1]}, 0, false});
  }
  ValueId product(ValueId a, ValueId b) { return add(Op::matmul, DType::float32, {shape(a)[0], shape(b)[1]}, {a, b}); }
  ValueId plus(ValueId a, ValueId b) { return add(Op::add, DType::float32, shape(a), {a, b}); }
  ValueId negative(ValueId a) { return add(Op::neg, DType::float32, shape(a), {a}); }
};

int products(const compile::Program& program) {
  return static_cast<int>(std::ranges::count(program.values, Op::matmul, &compile::Value::op));
}

/// How many products the pass leaves; the program computes the same.
int products_after(compile::Program program, const compile::Target& target = JoinsProducts()) {
  std::vector<testing::Values> leaves;
  for (const compile::Leaf& leaf : program.leaves) {
    const Shape& shape = compile::value_at(program, leaf.value).shape;
    leaves.push_back(testing::integers(DType::float32, shape, static_cast<int>(leaves.size())));
  }
  const auto expected = testing::evaluate(program, leaves);
  compile::passes::join(program, target);
  const auto found = testing::evaluate(program, leaves);
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape, expected[i].shape) << i;
    EXPECT_EQ(found[i].values, expected[i].values) << i;
  }
  return products(program);
}

/// x a^T + b for each of so many columns; the last may go without its bias.
Matrices linear_layers(const std::vector<std::int64_t>& columns, bool all_have_biases) {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ValueId y = m.product(x, m.transpose(m.matrix(columns[i], 4)));
    const bool has_bias = all_have_biases || i + 1 < columns.size();
    m.output(has_bias ? m.plus(y, m.leaf(DType::float32, {columns[i]})) : y);
  }
  return m;
}

TEST(Join, MakesOneOfProductsWithOneLeftFactor) {
  EXPECT_EQ(products_after(linear_layers({3, 6, 2}, true).program), 1);
  EXPECT_EQ(products_after(linear_layers({3, 6, 2}, false).program), 1);
  EXPECT_EQ(products_after(linear_layers({3}, true).program), 1);
}

TEST(Join, MakesOneOfProductsWithOneRightFactor) {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  for (const std::int64_t columns : {3, 6}) m.output(m.product(m.transpose(m.matrix(5, columns)), x));
  EXPECT_EQ(products_after(m.program), 1);
}

TEST(Join, LeavesFactorsOfOneSideThatLieOtherwise) {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  m.output(m.product(x, m.transpose(m.matrix(3, 4))));
  m.output(m.product(x, m.matrix(4, 6)));
  EXPECT_EQ(products_after(m.program), 2);
}

/// Attention takes its heads, [head, row, column], of linear layers with biases.
Matrices heads_of_layers() {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  for (int i = 0; i < 3; ++i) {
    const ValueId y = m.plus(m.product(x, m.transpose(m.matrix(6, 4))), m.leaf(DType::float32, {6}));
    m.output(m.negative(m.add(Op::strided, DType::float32, {2, 5, 3}, {y}, View{{3, 6, 1}, 0, false})));
  }
  return m;
}

TEST(Join, BiasesStayWithTheProductsWhoseAxesAreReordered) {
  compile::Program program = heads_of_layers().program;
  compile::passes::simplify(program, JoinsProducts());
  EXPECT_EQ(products_after(program), 1);
  compile::passes::join(program, JoinsProducts());
  std::vector<Shape> sums;
  for (const compile::Value& value : program.values) {
    if (value.op == Op::add) sums.push_back(value.shape);
  }
  EXPECT_EQ(sums, std::vector<Shape>{Shape({5, 18})});
}

/// The gradients of layers with one input: for the input, with another term, and for weights.
Matrices gradients(std::int64_t rows = 5, std::int64_t width = 4) {
  Matrices m;
  const ValueId x = m.matrix(rows, width);
  ValueId sum = m.matrix(rows, width);
  std::vector<ValueId> weights, gradients;
  for (const std::int64_t columns : {3, 6, 2}) weights.push_back(m.matrix(columns, width));
  for (const std::int64_t columns : {3, 6, 2}) gradients.push_back(m.negative(m.matrix(rows, columns)));
  for (const std::size_t i : {2U, 0U, 1U}) {
    sum = m.plus(sum, m.product(gradients[i], weights[i]));
    m.output(m.product(m.transpose(gradients[i]), x));
  }
  m.output(sum);
  return m;
}

TEST(Join, MakesOneOfProductsThatAreAddedUp) { EXPECT_EQ(products_after(gradients().program), 2); }

TEST(Join, PutsFactorsTogetherOnce) {
  compile::Program program = gradients().program;
  compile::passes::join(program, JoinsProducts());
  EXPECT_EQ(std::ranges::count(program.values, Op::empty, &compile::Value::op), 2);  // weights, gradients
}

TEST(Join, LeavesSumsThatOthersRead) {
  Matrices m;
  const ValueId a = m.product(m.matrix(5, 3), m.matrix(3, 4));
  const ValueId b = m.product(m.matrix(5, 2), m.matrix(2, 4));
  m.output(m.plus(a, b));
  m.output(m.negative(a));
  EXPECT_EQ(products_after(m.program), 2);
}

// x a and x (x a)
TEST(Join, LeavesProductsThatNeedEachOther) {
  Matrices m;
  const ValueId x = m.matrix(4, 4);
  const ValueId first = m.product(x, m.matrix(4, 4));
  m.output(m.product(x, m.negative(first)));
  m.output(first);
  EXPECT_EQ(products_after(m.program), 2);
}

TEST(Join, LeavesProductsWhoseBiasNeedsAnother) {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  const ValueId first = m.product(x, m.transpose(m.matrix(3, 4)));
  const ValueId second = m.product(x, m.transpose(m.matrix(3, 4)));
  const ValueId sum = m.plus(first, m.leaf(DType::float32, {3}));
  const ValueId row = m.add(Op::strided, DType::float32, {3}, {sum}, View{{1}, 0, false});
  m.output(m.plus(second, row));
  EXPECT_EQ(products_after(m.program), 2);
}

// a1 and b1, then a2, which needs b1, and b2, which needs a1: both pairs as one each would wait for each other.
TEST(Join, LeavesPairsThatWouldWaitForEachOther) {
  Matrices m;
  const ValueId x = m.matrix(4, 4);
  const ValueId y = m.matrix(4, 4);
  const ValueId a1 = m.product(x, m.matrix(4, 4));
  const ValueId b1 = m.product(y, m.matrix(4, 4));
  const ValueId a2 = m.product(x, m.negative(b1));
  const ValueId b2 = m.product(y, m.negative(a1));
  for (const ValueId id : {a1, b1, a2, b2}) m.output(id);
  EXPECT_EQ(products_after(m.program), 3);
}

// The second factor is computed after the first product, and what reads the first comes before the second.
TEST(Join, ComputesFactorsBeforeTheFirstProduct) {
  Matrices m;
  const ValueId x = m.matrix(5, 4);
  const ValueId first = m.negative(m.product(x, m.matrix(4, 3)));
  const ValueId second = m.product(x, m.negative(m.matrix(4, 6)));
  m.output(first);
  m.output(second);
  EXPECT_EQ(products_after(m.program), 1);
}

TEST(Join, LeavesProductsWhereADevicePrefersThem) {
  EXPECT_EQ(products_after(linear_layers({3, 6, 2}, true).program, PlansAlone()), 3);
}

TEST(Passes, JoinedProductsAndTheirFactorsAreComputedOnce) {
  // Large enough for pieces to be computed in their place.
  const compile::Plan plan = compile::make_plan(gradients(1100, 1100).program, JoinsProducts());
  int products = 0;
  int groups = 0;
  for (const compile::Step& step : plan.program.steps) {
    (std::holds_alternative<compile::Group>(step) ? groups : products) += 1;
  }
  EXPECT_EQ(products, 2);
  // Three weights are copied, three gradients computed in their place, the sum's other term added, and three results
  // that leave the plan are copied.
  EXPECT_EQ(groups, 3 + 3 + 1 + 3);
}

}  // namespace
}  // namespace russet
