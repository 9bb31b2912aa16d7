// The pass maxima: a condition on what a pool chose from moves before the pool's gradient is spread, and results stay.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;
using testing::SmallProgram;
using testing::Values;

struct Case {
  ops::Window window{.kernel = {2, 2}, .stride = {2, 2}};
  Shape image{2, 3, 4, 6};
  Shape results{2, 3, 2, 3};
  Op asks = Op::le;  // where(y <= 0, 0, ...); any other: where(asks(y, 0), ..., 0)
};

/// A pool's gradient behind a condition on its image, as a relu before the pool gives it.
class Gradient {
 public:
  explicit Gradient(const Case& c) : shape_(c.image) {
    image = small.leaf(DType::float32, c.image);
    other_image = small.leaf(DType::float32, c.image);
    pooled = small.leaf(DType::float32, c.results);
    weight = small.leaf(DType::float32, {5, c.image[1], 1, 1});
    zero = small.add(Op::constant, DType::float32, {}, {}, ops::Number{});
    unpooled = small.add(Op::max_unpool, DType::float32, c.image, {image, pooled}, c.window);
    condition = small.add(c.asks, DType::boolean, c.image, {image, zero});
    through = c.asks == Op::le ? small.add(Op::where, DType::float32, c.image, {condition, zero, unpooled})
                               : small.add(Op::where, DType::float32, c.image, {condition, unpooled, zero});
  }

  void add_convolution() {
    Shape result = shape_;
    result[1] = 5;
    small.output(small.add(Op::convolution, DType::float32, result, {through, weight}, ops::Window{}));
  }
  void add_sum(std::uint32_t axes) {
    Shape result = shape_;
    for (int axis = 0; axis < 4; ++axis) {
      if ((axes >> axis & 1U) != 0) result[axis] = 1;
    }
    small.output(small.add(Op::sum, DType::float32, result, {through}, ops::Axes{.mask = axes}));
  }
  void add_product() { small.output(small.add(Op::mul, DType::float32, shape_, {through, through})); }

  std::vector<Values> leaves() const {
    std::vector<Values> leaves;
    for (const compile::Leaf& leaf : small.program.leaves) {
      const compile::Value& value = compile::value_at(small.program, leaf.value);
      leaves.push_back(testing::integers(value.dtype, value.shape, static_cast<int>(leaves.size())));
    }
    return leaves;
  }

  SmallProgram small;
  ValueId image, other_image, pooled, weight, zero, unpooled, condition, through;

 private:
  Shape shape_;
};

constexpr std::uint32_t channels_stay = 0b1101;

bool has_pool(const compile::Program& program) {
  return std::ranges::any_of(program.values, [](const compile::Value& value) { return value.op == Op::max_pool; });
}

/// Whether the condition moved; results must be as before.
bool moves(Gradient gradient, const std::vector<Values>& leaves) {
  compile::Program& program = gradient.small.program;
  const std::vector<Values> before = testing::evaluate(program, leaves);
  compile::passes::maxima(program, PlansAlone());
  const std::vector<Values> after = testing::evaluate(program, leaves);
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t j = 0; j < before[i].values.size(); ++j) {
      const double a = before[i].values[j], b = after[i].values[j];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << i << " " << j << ": " << a << " became " << b;
    }
  }
  return has_pool(program);
}
bool moves(const Gradient& gradient) { return moves(gradient, gradient.leaves()); }

Gradient of_a_layer(const Case& c) {
  Gradient gradient(c);
  gradient.add_convolution();
  gradient.add_sum(channels_stay);
  return gradient;
}

TEST(Maxima, KeepResults) {
  EXPECT_TRUE(moves(of_a_layer({})));
  EXPECT_TRUE(moves(of_a_layer({.asks = Op::lt})));
  // Windows that overlap, with margins, and ones with gaps between them.
  EXPECT_TRUE(moves(of_a_layer(
      {{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .padding_after = {1, 1}}, {2, 3, 7, 5}, {2, 3, 4, 3}})));
  EXPECT_TRUE(moves(of_a_layer({{.kernel = {2, 1}, .stride = {3, 2}}, {1, 2, 5, 3}, {1, 2, 2, 2}})));
}

TEST(Maxima, StayWhereAWindowChoosesNothing) {
  EXPECT_FALSE(moves(of_a_layer(
      {{.kernel = {2, 2}, .stride = {2, 2}, .padding = {2, 0}, .padding_after = {2, 0}}, {2, 3, 4, 6}, {2, 3, 4, 3}})));
  EXPECT_FALSE(moves(of_a_layer(
      {{.kernel = {2, 2}, .stride = {2, 2}, .padding = {0, 0}, .padding_after = {0, 2}}, {2, 3, 4, 6}, {2, 3, 2, 4}})));
}

TEST(Maxima, MayBeNoNumbers) {
  const Gradient gradient = of_a_layer({});
  std::vector<Values> leaves = gradient.leaves();
  leaves[0].values[8] = std::numeric_limits<double>::quiet_NaN();
  leaves[0].values[20] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(moves(gradient, leaves));
}

TEST(Maxima, StayWhereOthersReadTheElements) {
  Gradient product = of_a_layer({});
  product.add_product();
  EXPECT_FALSE(moves(product));
  Gradient output = of_a_layer({});
  output.small.output(output.through);
  EXPECT_FALSE(moves(output));
  Gradient rows = of_a_layer({});
  rows.add_sum(0b0101);  // a sum a row
  EXPECT_FALSE(moves(rows));
  Gradient unpooled = of_a_layer({});
  unpooled.small.output(unpooled.unpooled);
  EXPECT_FALSE(moves(unpooled));
}

TEST(Maxima, StayWhereTheConditionAsksForSomethingElse) {
  Gradient another = of_a_layer({});
  another.small.program.values[static_cast<std::size_t>(another.condition)].inputs[0] = another.other_image;
  EXPECT_FALSE(moves(another));
  Gradient both = of_a_layer({});
  both.small.program.values[static_cast<std::size_t>(both.condition)].inputs[1] = both.other_image;
  EXPECT_FALSE(moves(both));
}

TEST(Maxima, StayWhereSomethingElseThanZeroIsLetThrough) {
  Gradient gradient = of_a_layer({});
  gradient.small.program.values[static_cast<std::size_t>(gradient.zero)].attributes = ops::Number{.real = 1};
  EXPECT_FALSE(moves(gradient));
}

TEST(Passes, GradientsOfAReluBeforeAPoolAreChosenAtMaxima) {
  const compile::Plan plan = compile::make_plan(of_a_layer({}).small.program, PlansAlone());
  EXPECT_TRUE(std::ranges::any_of(plan.program.steps, [](const compile::Step& step) {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    return primitive != nullptr && primitive->op == Op::max_pool;
  }));
}

}  // namespace
}  // namespace russet
