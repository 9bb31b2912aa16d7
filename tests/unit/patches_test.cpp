// The pass patches: convolutions whose windows lie side by side become products with the same results.
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

class PrefersProducts final : public compile::Target {
 public:
  std::unique_ptr<compile::Kernel> compile(const compile::Step&) const override { return std::make_unique<Nothing>(); }
  bool prefers_products(const compile::Primitive&) const override { return true; }
};

struct Case {
  ops::Window window;
  Shape image, weight, result;
};

/// Patches of 2 x 3.
const Case tiled{{.stride = {2, 3}}, {2, 4, 6, 9}, {5, 4, 2, 3}, {2, 5, 3, 3}};

/// A convolution and its two gradients, all kept.
testing::SmallProgram convolutions(const Case& c) {
  testing::SmallProgram small;
  const ValueId image = small.leaf(DType::float32, c.image);
  const ValueId weight = small.leaf(DType::float32, c.weight);
  const ValueId gradient = small.leaf(DType::float32, c.result);
  ops::Window window = c.window;
  window.kernel = {static_cast<std::int32_t>(c.weight[2]), static_cast<std::int32_t>(c.weight[3])};
  small.output(small.add(Op::convolution, DType::float32, c.result, {image, weight}, c.window));
  small.output(small.add(Op::convolution_input, DType::float32, c.image, {gradient, weight}, c.window));
  small.output(small.add(Op::convolution_weight, DType::float32, c.weight, {image, gradient}, window));
  return small;
}

int count(const compile::Program& program, Op op) {
  return static_cast<int>(std::ranges::count(program.values, op, &compile::Value::op));
}

bool becomes_products(const Case& c, const compile::Target& target) {
  testing::SmallProgram small = convolutions(c);
  compile::passes::patches(small.program, target);
  return count(small.program, Op::matmul) == 3;
}

TEST(Patches, AreProductsWithTheSameResults) {
  testing::SmallProgram small = convolutions(tiled);
  const std::vector<testing::Values> leaves{testing::integers(DType::float32, tiled.image, 1),
                                            testing::integers(DType::float32, tiled.weight, 2),
                                            testing::integers(DType::float32, tiled.result, 3)};
  const auto expected = testing::evaluate(small.program, leaves);
  compile::passes::patches(small.program, PrefersProducts());
  EXPECT_EQ(count(small.program, Op::matmul), 3);
  EXPECT_EQ(count(small.program, Op::convolution), 0);
  const auto found = testing::evaluate(small.program, leaves);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape, expected[i].shape);
    EXPECT_EQ(found[i].values, expected[i].values);
  }
}

TEST(Patches, AreNoWindowsThatOverlapOrLeaveGaps) {
  const PrefersProducts target;
  EXPECT_TRUE(becomes_products(tiled, target));
  EXPECT_FALSE(becomes_products({{.stride = {2, 2}}, {2, 4, 6, 9}, {5, 4, 2, 3}, {2, 5, 3, 4}}, target));
  EXPECT_FALSE(becomes_products({{.stride = {2, 3}}, {2, 4, 7, 9}, {5, 4, 2, 3}, {2, 5, 3, 3}}, target));
  EXPECT_FALSE(becomes_products({{.stride = {2, 3}, .groups = 2}, {2, 4, 6, 9}, {6, 2, 2, 3}, {2, 6, 3, 3}}, target));
  EXPECT_FALSE(becomes_products({{.stride = {1, 1}}, {2, 4, 6, 9}, {5, 4, 1, 1}, {2, 5, 6, 9}}, target));
  const Case padded{
      {.stride = {2, 3}, .padding = {1, 0}, .padding_after = {1, 0}}, {2, 4, 4, 9}, {5, 4, 2, 3}, {2, 5, 3, 3}};
  EXPECT_FALSE(becomes_products(padded, target));
}

/// A device that says nothing of it.
class Plain final : public compile::Target {
 public:
  std::unique_ptr<compile::Kernel> compile(const compile::Step&) const override { return std::make_unique<Nothing>(); }
};

TEST(Patches, StayConvolutionsWhereADevicePrefersThem) { EXPECT_FALSE(becomes_products(tiled, Plain())); }

TEST(Passes, PatchesOfAnImageAreCopiedOnce) {
  const compile::Plan plan = compile::make_plan(convolutions(tiled).program, PrefersProducts());
  int products = 0;
  int copies = 0;
  for (const compile::Step& step : plan.program.steps) {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    (primitive != nullptr && primitive->op == Op::matmul ? products : copies) += 1;
  }
  EXPECT_EQ(products, 3);
  // The image's patches, the gradient's rows, the result's images and those of the image's gradient.
  EXPECT_EQ(copies, 4);
}

}  // namespace
}  // namespace russet
