// The pass space_to_depth: convolutions of few channels lose their stride, and keep their results.
#include <gtest/gtest.h>

#include <set>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "convolution_case.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;

class PrefersDepth final : public PlansAlone {
 public:
  bool prefers_space_to_depth(const compile::Primitive&) const override { return true; }
};

using Case = testing::ConvolutionCase;

/// A convolution and the gradient for its weight.
testing::SmallProgram convolutions(const Case& c) {
  return testing::convolutions(c, {Op::convolution, Op::convolution_weight});
}

/// The stride along the image's height of all convolutions that are left.
std::vector<std::int32_t> strides_of(const compile::Program& program) {
  std::vector<std::int32_t> strides;
  for (const compile::Value& value : program.values) {
    if (const auto* window = std::get_if<ops::Window>(&value.attributes)) strides.push_back(window->stride[0]);
  }
  return strides;
}

void expect_no_stride_and_the_same_results(const Case& c) {
  testing::SmallProgram small = convolutions(c);
  testing::expect_same_results(c, small.program,
                               [&] { compile::passes::space_to_depth(small.program, PrefersDepth()); });
  EXPECT_EQ(strides_of(small.program), (std::vector<std::int32_t>{1, 1}));
}

void expect_untouched(const Case& c) {
  testing::SmallProgram small = convolutions(c);
  const std::size_t values = small.program.values.size();
  compile::passes::space_to_depth(small.program, PrefersDepth());
  EXPECT_EQ(small.program.values.size(), values);
}

ops::Window window_of(std::array<std::int32_t, 2> stride, std::array<std::int32_t, 2> padding) {
  return {.stride = stride, .padding = padding, .padding_after = padding};
}

TEST(SpaceToDepth, KeepsResults) {
  // As the first convolutions of ResNets, EfficientNets and AlexNet; then what does not come out even.
  expect_no_stride_and_the_same_results({window_of({2, 2}, {3, 3}), {2, 3, 14, 12}, {5, 3, 7, 7}, {2, 5, 7, 6}});
  expect_no_stride_and_the_same_results({window_of({2, 2}, {1, 1}), {2, 3, 9, 8}, {4, 3, 3, 3}, {2, 4, 5, 4}});
  expect_no_stride_and_the_same_results({window_of({4, 4}, {2, 2}), {1, 3, 23, 19}, {4, 3, 11, 11}, {1, 4, 5, 4}});
  expect_no_stride_and_the_same_results({window_of({2, 3}, {0, 2}), {2, 1, 10, 11}, {3, 1, 5, 4}, {2, 3, 3, 4}});
  expect_no_stride_and_the_same_results({window_of({3, 2}, {1, 0}), {1, 4, 13, 9}, {2, 4, 4, 5}, {1, 2, 4, 3}});
}

TEST(SpaceToDepth, GivesPixelsChannels) {
  expect_no_stride_and_the_same_results({window_of({1, 1}, {1, 1}), {2, 3, 7, 6}, {4, 3, 3, 3}, {2, 4, 7, 6}});
  expect_no_stride_and_the_same_results({window_of({1, 1}, {0, 2}), {2, 1, 7, 6}, {4, 1, 5, 3}, {2, 4, 3, 8}});
  expect_no_stride_and_the_same_results({window_of({2, 1}, {1, 1}), {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 3, 6}});
}

TEST(SpaceToDepth, MakesEnoughChannelsForTensorCores) {
  const Case c{window_of({2, 2}, {3, 3}), {2, 3, 14, 12}, {5, 3, 7, 7}, {2, 5, 7, 6}};
  const auto expect_channels = [&](DType dtype, std::int64_t channels) {
    testing::SmallProgram small = testing::convolutions(c, {Op::convolution, Op::convolution_weight}, dtype);
    compile::passes::space_to_depth(small.program, PrefersDepth());
    for (const compile::Value& value : small.program.values) {
      if (value.op != Op::convolution) continue;
      EXPECT_EQ(compile::value_at(small.program, value.inputs[0]).shape, (Shape{2, channels, 10, 9}));
      EXPECT_EQ(compile::value_at(small.program, value.inputs[1]).shape, (Shape{5, channels, 4, 4}));
    }
  };
  expect_channels(DType::bfloat16, 16);
  expect_channels(DType::float32, 12);
}

TEST(SpaceToDepth, LeavesOtherConvolutionsAlone) {
  expect_untouched({window_of({1, 1}, {1, 1}), {2, 4, 6, 6}, {4, 4, 3, 3}, {2, 4, 6, 6}});
  expect_untouched({window_of({1, 1}, {0, 0}), {2, 3, 6, 6}, {4, 3, 1, 1}, {2, 4, 6, 6}});
  expect_untouched({window_of({2, 2}, {0, 0}), {2, 3, 6, 6}, {4, 3, 2, 2}, {2, 4, 3, 3}});
  expect_untouched({window_of({2, 2}, {1, 1}), {2, 5, 6, 6}, {4, 5, 3, 3}, {2, 4, 3, 3}});
  ops::Window grouped = window_of({2, 2}, {1, 1});
  grouped.groups = 2;
  expect_untouched({grouped, {2, 4, 6, 6}, {4, 2, 3, 3}, {2, 4, 3, 3}});
  ops::Window dilated = window_of({2, 2}, {2, 2});
  dilated.dilation = {2, 2};
  expect_untouched({dilated, {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 3, 3}});
}

TEST(SpaceToDepth, IsForDevicesThatPreferIt) {
  testing::SmallProgram small = convolutions({window_of({2, 2}, {1, 1}), {2, 3, 8, 8}, {4, 3, 3, 3}, {2, 4, 4, 4}});
  compile::passes::space_to_depth(small.program, PlansAlone());
  EXPECT_EQ(strides_of(small.program), (std::vector<std::int32_t>{2, 2}));
}

TEST(Passes, SpaceToDepthMakesTheImagesBlocksOnce) {
  const Case c{window_of({2, 2}, {3, 3}), {2, 3, 14, 12}, {5, 3, 7, 7}, {2, 5, 7, 6}};
  const compile::Plan plan = compile::make_plan(convolutions(c).program, PrefersDepth());
  std::set<std::int32_t> images;
  for (const compile::Step& step : plan.program.steps) {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    if (primitive == nullptr) continue;
    EXPECT_EQ(primitive->inputs[0].sizes, (Shape{2, 12, 10, 9}));
    images.insert(primitive->inputs[0].access.slot);
  }
  EXPECT_EQ(images.size(), 1U);
}

}  // namespace
}  // namespace russet
