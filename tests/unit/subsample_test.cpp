// The pass subsample: convolutions of single pixels lose their stride, and keep their results.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "convolution_case.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

using ops::Op;

class PrefersSubsampling final : public PlansAlone {
 public:
  bool prefers_subsampling(const compile::Primitive&) const override { return true; }
};

using Case = testing::ConvolutionCase;

/// Whether the convolution has lost its stride.
bool loses_its_stride(const Case& c, const compile::Target& target) {
  testing::SmallProgram small = testing::convolutions(c, {Op::convolution});
  const std::size_t values = small.program.values.size();
  compile::passes::subsample(small.program, target);
  const compile::Value& last = small.program.values.back();
  return small.program.values.size() > values &&
         std::get<ops::Window>(last.attributes).stride == std::array<std::int32_t, 2>{1, 1};
}

void expect_the_same_results_without_a_stride(const Case& c) {
  testing::SmallProgram small = testing::convolutions(c, {Op::convolution});
  testing::expect_same_results(c, small.program,
                               [&] { compile::passes::subsample(small.program, PrefersSubsampling()); });
  EXPECT_TRUE(loses_its_stride(c, PrefersSubsampling()));
}

TEST(Subsample, KeepsResults) {
  expect_the_same_results_without_a_stride({{.stride = {2, 2}}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 4, 3}});
  // Pixels behind the last ones that are seen, and strides of two sizes.
  expect_the_same_results_without_a_stride({{.stride = {3, 2}}, {2, 3, 9, 7}, {4, 3, 1, 1}, {2, 4, 3, 4}});
  expect_the_same_results_without_a_stride({{.stride = {1, 4}}, {1, 2, 3, 5}, {4, 2, 1, 1}, {1, 4, 3, 2}});
}

TEST(Subsample, LeavesOtherConvolutions) {
  const PrefersSubsampling target;
  EXPECT_FALSE(loses_its_stride({{}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 8, 6}}, target));
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}}, {2, 3, 8, 6}, {5, 3, 2, 1}, {2, 5, 4, 3}}, target));
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}}, {2, 3, 8, 6}, {5, 3, 1, 2}, {2, 5, 4, 3}}, target));
  EXPECT_FALSE(
      loses_its_stride({{.stride = {2, 2}, .padding = {1, 0}}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 5, 3}}, target));
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}, .padding_after = {0, 1}}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 4, 4}},
                                target));
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}, .groups = 3}, {2, 3, 8, 6}, {6, 1, 1, 1}, {2, 6, 4, 3}}, target));
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}}, {0, 3, 8, 6}, {5, 3, 1, 1}, {0, 5, 4, 3}}, target));
}

TEST(Passes, PixelsThatAConvolutionSeesAreCopied) {
  const Case strided{{.stride = {2, 2}}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 4, 3}};
  const compile::Plan plan =
      compile::make_plan(testing::convolutions(strided, {Op::convolution}).program, PrefersSubsampling());
  ASSERT_EQ(plan.program.steps.size(), 2U);
  const auto* convolution = std::get_if<compile::Primitive>(&plan.program.steps[1]);
  ASSERT_NE(convolution, nullptr);
  EXPECT_EQ(convolution->inputs[0].sizes, (Shape{2, 3, 4, 3}));
}

TEST(Subsample, LeavesConvolutionsWhereADevicePrefersThem) {
  EXPECT_FALSE(loses_its_stride({{.stride = {2, 2}}, {2, 3, 8, 6}, {5, 3, 1, 1}, {2, 5, 4, 3}}, PlansAlone()));
}

}  // namespace
}  // namespace russet
