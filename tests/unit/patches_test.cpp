// The pass patches: convolutions whose windows lie side by side become products with the same results.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "convolution_case.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;

class PrefersProducts final : public PlansAlone {
 public:
  bool prefers_products(const compile::Primitive&) const override { return true; }
};

using Case = testing::ConvolutionCase;

/// Patches of 2 x 3.
const Case tiled{{.stride = {2, 3}}, {2, 4, 6, 9}, {5, 4, 2, 3}, {2, 5, 3, 3}};

/// A convolution and its two gradients.
testing::SmallProgram convolutions(const Case& c) {
  return testing::convolutions(c, {Op::convolution, Op::convolution_input, Op::convolution_weight});
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
  testing::expect_same_results(tiled, small.program,
                               [&] { compile::passes::patches(small.program, PrefersProducts()); });
  EXPECT_EQ(count(small.program, Op::matmul), 3);
  EXPECT_EQ(count(small.program, Op::convolution), 0);
}

// Both are computed from the same factors.
TEST(Patches, KeepTheTypesOfTheirResults) {
  testing::SmallProgram small = testing::convolutions(tiled, {Op::convolution, Op::convolution}, DType::bfloat16);
  small.program.values.back().dtype = DType::float32;
  compile::passes::patches(small.program, PrefersProducts());
  std::vector<DType> types;
  for (const compile::Value& value : small.program.values) {
    if (value.op == Op::matmul) types.push_back(value.dtype);
  }
  EXPECT_EQ(types, (std::vector<DType>{DType::bfloat16, DType::float32}));
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

TEST(Patches, StayConvolutionsWhereADevicePrefersThem) { EXPECT_FALSE(becomes_products(tiled, PlansAlone())); }

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
