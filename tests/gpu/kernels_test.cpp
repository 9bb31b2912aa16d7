// The hand-written kernels on the simulated GPU, all checks on, against the reference device: odd sizes, every type,
// every layout.
#include <gtest/gtest.h>

#include "gpu/kernel_cases.h"

namespace russet::gputest {
namespace {

using ops::Op;
using ops::Window;

constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16};
constexpr DType integers[] = {DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64};
constexpr DType all_types[] = {DType::boolean, DType::uint8,   DType::int8,     DType::int16,  DType::int32,
                               DType::int64,   DType::float16, DType::bfloat16, DType::float32};

const ConvolutionShape convolution_shapes[] = {
    {2, 9, 7, 9, 10, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}},
    {2, 8, 9, 7, 9, 3, 2, {.stride = {2, 3}, .padding = {1, 0}, .padding_after = {0, 1}}},
    {1, 8, 11, 10, 8, 3, 3, {.padding = {2, 2}, .padding_after = {2, 2}, .dilation = {2, 2}}},
    {3, 12, 5, 6, 11, 1, 1, {}},
    {2, 8, 6, 7, 9, 1, 1, {.stride = {2, 2}}},
    {2, 9, 8, 8, 10, 2, 2, {.stride = {2, 2}}},
    {2, 16, 5, 5, 18, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}, .groups = 2}},
    {2, 6, 7, 5, 6, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}, .groups = 6}},
    {1, 3, 12, 13, 4, 5, 5, {}},
};

void expect_right(const std::vector<Case>& cases) {
  for (const Outcome& outcome : run(cases))
    EXPECT_EQ(outcome.complaint, "") << outcome.name << " by " << outcome.kernel;
}

TEST(Kernels, MatrixProductsOfOddSizesAndAllTranspositions) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    for (const Layout left : {Layout::contiguous, Layout::reversed}) {
      for (const Layout right : {Layout::contiguous, Layout::reversed}) {
        cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, left, right));
      }
    }
  }
  cases.push_back(product(DType::float32, {8, 16}, {16, 8}, {8, 8}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::float32, {64, 64}, {64, 64}, {64, 64}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::float32, {9, 1}, {1, 65}, {9, 65}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::float32, {33, 17}, {17, 10}, {33, 10}, Layout::spaced, Layout::flipped));
  cases.push_back(product(DType::float32, {12, 0}, {0, 10}, {12, 10}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::float32, {0, 5}, {5, 10}, {0, 10}, Layout::contiguous, Layout::contiguous));
  expect_right(cases);
}

TEST(Kernels, FactorsAreComputedWhereTheyAreRead) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    for (const Layout left : {Layout::contiguous, Layout::reversed, Layout::flipped}) {
      cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, left, Layout::reversed));
    }
    cases.push_back(product(type, {70, 33}, {33, 1}, {70, 1}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {20, 1500}, {1500, 17}, {20, 17}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {2, 9, 10}, {2, 10, 11}, {2, 9, 11}, Layout::contiguous, Layout::contiguous));
    cases.back().bias_axis = 2;
    cases.push_back(product(type, {64, 40}, {40, 64}, {64, 64}, Layout::contiguous, Layout::contiguous));
    cases.back().column_sums = true;
  }
  for (const ConvolutionShape& shape : convolution_shapes) {
    for (const Layout layout : {Layout::channels_last, Layout::contiguous}) {
      add_convolutions(cases, DType::float32, shape, layout);
    }
  }
  for (Case& one : cases) one.prologues = true;
  expect_right(cases);
}

TEST(Kernels, FactorsAreStoredWhereTheyAreRead) {
  std::vector<Case> cases;
  for (const DType type : floats) add_storing(cases, type);
  cases.push_back(cases.front());
  cases.back().column_sums = true;
  expect_right(cases);
}

TEST(Kernels, EpiloguesUpdateInPlace) {
  std::vector<Case> cases;
  for (const DType type : floats) add_updates(cases, type);
  cases.push_back(cases.front());
  cases.back().slices = 3;
  expect_right(cases);
}

TEST(Kernels, LargeMatrixProductsTakeLargeTiles) {
  const std::vector<Case> cases{
      product(DType::float32, {520, 40}, {40, 515}, {520, 515}, Layout::contiguous, Layout::contiguous)};
  const auto outcomes = run(cases);
  EXPECT_EQ(outcomes[0].complaint, "");
  EXPECT_EQ(outcomes[0].kernel, "tiles 64x64");
}

TEST(Kernels, BatchesBroadcast) {
  std::vector<Case> cases;
  const auto add = [&](const Shape& left, const Shape& right, const Shape& result) {
    for (const Layout layout : {Layout::contiguous, Layout::reversed}) {
      cases.push_back(product(DType::float32, left, right, result, layout, Layout::contiguous));
    }
  };
  add({3, 9, 10}, {3, 10, 11}, {3, 9, 11});
  add({3, 9, 10}, {1, 10, 11}, {3, 9, 11});
  add({1, 9, 10}, {4, 10, 11}, {4, 9, 11});
  add({2, 1, 9, 10}, {1, 3, 10, 11}, {2, 3, 9, 11});
  add({2, 3, 2, 9, 10}, {2, 1, 2, 10, 11}, {2, 3, 2, 9, 11});
  expect_right(cases);
}

TEST(Kernels, DeepProductsAreSplit) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    cases.push_back(product(type, {20, 1500}, {1500, 17}, {20, 17}, Layout::contiguous, Layout::reversed));
    cases.push_back(product(type, {3, 1500}, {1500, 2}, {3, 2}, Layout::contiguous, Layout::contiguous));
  }
  const auto outcomes = run(cases);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
    EXPECT_NE(outcome.kernel.find("parts"), std::string::npos) << outcome.kernel;
  }
}

TEST(Kernels, ThinProductsAndIntegersTakeAnElementAThread) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    cases.push_back(product(type, {1, 33}, {33, 70}, {1, 70}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {70, 33}, {33, 1}, {70, 1}, Layout::contiguous, Layout::contiguous));
  }
  for (const DType type : integers) {
    cases.push_back(product(type, {2, 9, 33}, {1, 33, 10}, {2, 9, 10}, Layout::contiguous, Layout::reversed));
  }
  // Integers wrap around.
  Case wraps = product(DType::int8, {9, 300}, {300, 9}, {9, 9}, Layout::contiguous, Layout::contiguous);
  wraps.inputs[0].fill = wraps.inputs[1].fill = {-100, 100, true};
  cases.push_back(wraps);
  expect_right(cases);
}

TEST(Kernels, ConvolutionsAndBothGradients) {
  std::vector<Case> cases;
  for (const ConvolutionShape& shape : convolution_shapes) {
    for (const Layout layout : {Layout::channels_last, Layout::contiguous}) {
      add_convolutions(cases, DType::float32, shape, layout);
    }
  }
  expect_right(cases);
}

TEST(Kernels, EpiloguesRunOnResults) {
  std::vector<Case> cases;
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16, DType::int32}) {
    cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, Layout::contiguous, Layout::reversed));
    cases.push_back(
        product(type, {2, 3, 9, 20}, {2, 1, 20, 11}, {2, 3, 9, 11}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {20, 1500}, {1500, 17}, {20, 17}, Layout::contiguous, Layout::contiguous));
    add_convolutions(cases, type, convolution_shapes[0], Layout::channels_last);
    add_convolutions(cases, type, convolution_shapes[6], Layout::contiguous);
    add_convolutions(cases, type, convolution_shapes[7], Layout::channels_last);
  }
  for (Case& one : cases) one.bias_axis = one.op == Op::matmul ? one.output.sizes.rank() - 1 : 1;
  expect_right(cases);
}

TEST(Kernels, ConvolutionsOfEveryType) {
  std::vector<Case> cases;
  for (const DType type : {DType::float16, DType::bfloat16, DType::int32, DType::int64, DType::uint8}) {
    add_convolutions(cases, type, convolution_shapes[0], Layout::channels_last);
    add_convolutions(cases, type, convolution_shapes[7], Layout::channels_last);
  }
  expect_right(cases);
}

TEST(Kernels, WeightGradientsAreSplit) {
  std::vector<Case> cases;
  add_convolutions(cases, DType::float32, {8, 8, 14, 14, 8, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}},
                   Layout::channels_last);
  add_convolutions(cases, DType::float32,
                   {8, 4, 14, 14, 4, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}, .groups = 4}},
                   Layout::channels_last);
  const auto outcomes = run(cases);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.complaint, "") << outcome.name;
  EXPECT_NE(outcomes[2].kernel.find("parts"), std::string::npos) << outcomes[2].kernel;
  EXPECT_NE(outcomes[5].kernel.find("parts"), std::string::npos) << outcomes[5].kernel;
}

TEST(Kernels, PoolingOfEveryType) {
  std::vector<Case> cases;
  const Window overlapping{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 0}};
  for (const DType type : all_types) {
    add_pools(cases, type, {2, 3, 7, 6}, overlapping, Layout::channels_last, type == DType::boolean);
  }
  for (const Layout layout : {Layout::contiguous, Layout::reversed, Layout::spaced, Layout::flipped}) {
    add_pools(cases, DType::float32, {2, 3, 7, 6}, overlapping, layout, false);
    add_pools(cases, DType::float32, {1, 5, 8, 8}, {.kernel = {2, 2}, .stride = {2, 2}}, layout, false);
    add_pools(cases, DType::float32, {2, 2, 9, 8}, {.kernel = {2, 3}, .dilation = {3, 2}}, layout, false);
  }
  // Neighbouring channels, two or four a thread where they are aligned.
  const std::size_t first = cases.size();
  for (const DType type : floats) {
    for (const std::int64_t channels : {4, 6, 12}) {
      add_pools(cases, type, {2, channels, 9, 11},
                {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .padding_after = {1, 1}}, Layout::channels_last,
                true);
    }
  }
  for (std::size_t i = first; i < cases.size(); ++i) set_margin(cases[i], 8);
  // Windows that hold padding alone.
  add_pools(cases, DType::float32, {1, 2, 2, 3},
            {.kernel = {2, 2}, .stride = {2, 2}, .padding = {2, 2}, .padding_after = {3, 2}}, Layout::contiguous,
            false);
  expect_right(cases);
}

TEST(Kernels, AttentionOfEveryType) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    add_attentions(cases, type, {{2, 3}, 33, 40, 16, 16});
    add_attentions(cases, type, {{2, 3}, 18, 33, 24, 40, false, Shape{2, 1, 1, 33}, false, 0.25});
    add_attentions(cases, type, {{2}, 35, 35, 64, 64, true, {}, false, 0.1});
    add_attentions(cases, type, {{2}, 17, 20, 128, 100, false, Shape{2, 17, 20}, true});
  }
  expect_right(cases);
}

/// On a GPU that has warpgroups; operands begin at multiples of 16 bytes.
std::vector<Case> on_warpgroups(std::vector<Case> cases) {
  for (Case& one : cases) {
    put_on_warpgroups(one);
    set_margin(one, 8);
  }
  return cases;
}

void expect_split_products(const std::vector<Case>& cases) {
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.kernel.find("split product"), 0U) << outcome.name;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
}

TEST(Kernels, ProductsOfFloat32OnTensorCores) {
  std::vector<Case> cases;
  const auto add = [&](const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
                       Layout right_layout) {
    cases.push_back(product(DType::float32, left, right, result, left_layout, right_layout));
  };
  add({132, 48}, {48, 140}, {132, 140}, Layout::contiguous, Layout::contiguous);
  add({132, 52}, {52, 20}, {132, 20}, Layout::contiguous, Layout::reversed);
  add({20, 36}, {36, 132}, {20, 132}, Layout::reversed, Layout::contiguous);
  add({4, 4}, {4, 4}, {4, 4}, Layout::reversed, Layout::reversed);
  add({20, 600}, {600, 68}, {20, 68}, Layout::contiguous, Layout::contiguous);  // in two parts
  add({2, 3, 12, 20}, {2, 3, 20, 8}, {2, 3, 12, 8}, Layout::contiguous, Layout::contiguous);
  add({130, 48}, {48, 138}, {130, 138}, Layout::contiguous, Layout::reversed);
  add({12, 3, 4, 40}, {12, 3, 40, 8}, {12, 3, 4, 8}, Layout::contiguous, Layout::contiguous);  // more than cores
  add({260, 40}, {40, 516}, {260, 516}, Layout::contiguous, Layout::contiguous);
  for (const std::size_t with_bias : {std::size_t{0}, std::size_t{6}, cases.size() - 1}) {
    cases.push_back(cases[with_bias]);
    cases.back().bias_axis = 1;
  }
  expect_split_products(on_warpgroups(cases));
}

TEST(Kernels, ConvolutionsOfFloat32OnTensorCores) {
  std::vector<Case> cases;
  for (const ConvolutionShape& shape : std::vector<ConvolutionShape>{
           {2, 8, 5, 6, 12, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}},
           {1, 4, 7, 9, 8, 3, 2, {.stride = {2, 2}, .padding = {1, 0}, .padding_after = {0, 1}}},
           {2, 16, 5, 8, 72, 1, 1, {}},
           {2, 8, 8, 6, 4, 1, 1, {.stride = {2, 2}}},
           {1, 4, 8, 7, 8, 4, 3, {.stride = {1, 3}, .padding = {1, 2}, .padding_after = {2, 2}}},
           {1, 8, 7, 6, 16, 3, 3, {.dilation = {2, 1}, .groups = 2}}}) {
    add_convolutions(cases, DType::float32, shape, Layout::channels_last);
  }
  for (Case& one : cases) {
    // Weights of one pixel are matrices, as models have them.
    const bool is_matrix = one.name.find(", 1, 1] stride") != std::string::npos;
    one.inputs[1].layout = is_matrix && one.op != Op::convolution_weight ? Layout::contiguous : Layout::channels_last;
  }
  cases.push_back(cases.front());
  cases.back().updates = true;
  expect_split_products(on_warpgroups(cases));
}

TEST(Kernels, RemaindersOfAStridedGradientDoNotWaitForEachOther) {
  std::vector<Case> cases;
  for (const int kernel : {1, 3}) {  // pixels; of one, three of four remainders are zeros
    add_convolutions(cases, DType::float32, {2, 8, 6, 6, 8, kernel, kernel, {.stride = {2, 2}}}, Layout::channels_last);
  }
  std::erase_if(cases, [](const Case& one) { return one.op != Op::convolution_input; });
  cases.back().inputs[1].layout = Layout::channels_last;
  for (const Outcome& outcome : run(on_warpgroups(cases))) {
    EXPECT_NE(outcome.kernel.find("4 remainders"), std::string::npos) << outcome.kernel;
    EXPECT_EQ(outcome.launches, 4);
    EXPECT_EQ(outcome.waits, 0);
    EXPECT_EQ(outcome.complaint, "");
  }
}

TEST(Kernels, WhatTensorCoresCannotSplitIsComputedPlainly) {
  const Case one = product(DType::float32, {132, 48}, {48, 20}, {132, 20}, Layout::contiguous, Layout::contiguous);
  std::vector<Case> cases;
  const auto with = [&](const Fill& left, const Fill& right) {
    cases.push_back(one);
    cases.back().inputs[0].fill = left;
    cases.back().inputs[1].fill = right;
    cases.back().scale = 0;
  };
  with({-2, 2, false, 0.01}, {});
  with({-2, 2, false, 0, 0.001}, {});
  with({-3e38, 3e38}, {-0.01, 0.01});
  with({-1e-36, 1e-36}, {});
  with({}, {-1e-38, 1e-38});
  with({-1e-20, 1e-20}, {-1e20, 1e20});
  expect_split_products(on_warpgroups(cases));
}

TEST(Kernels, ProductsOfLittleWork) {
  std::vector<Case> cases;
  const auto add = [&](DType type, const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
                       Layout right_layout) {
    cases.push_back(product(type, left, right, result, left_layout, right_layout));
  };
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
    add(type, {64, 400}, {400, 120}, {64, 120}, Layout::contiguous, Layout::reversed);  // both along the depth
    add(type, {120, 64}, {64, 84}, {120, 84}, Layout::reversed, Layout::contiguous);    // neither
    add(type, {17, 10}, {10, 33}, {17, 33}, Layout::contiguous, Layout::reversed);      // not in vectors
    add(type, {2, 3, 20, 36}, {2, 3, 36, 9}, {2, 3, 20, 9}, Layout::contiguous, Layout::spaced);
    add(type, {1, 1}, {1, 1}, {1, 1}, Layout::contiguous, Layout::contiguous);
    add(type, {40, 700}, {700, 24}, {40, 24}, Layout::contiguous, Layout::contiguous);  // slices in several rounds
    add(type, {530, 16}, {16, 300}, {530, 300}, Layout::contiguous, Layout::flipped);
    add(type, {0, 8}, {8, 5}, {0, 5}, Layout::contiguous, Layout::contiguous);
    add(type, {6, 0}, {0, 5}, {6, 5}, Layout::contiguous, Layout::contiguous);
    cases.push_back(cases[cases.size() - 9]);
    cases.back().bias_axis = 1;
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      add_convolutions(cases, type, {3, 24, 2, 3, 40, 1, 1, {}}, layout);
      add_convolutions(cases, type, {2, 8, 3, 2, 12, 1, 1, {.groups = 4}}, layout);
    }
  }
  put_on_tensor_cores_in_vectors_too(cases);
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.kernel.find("small product"), 0U) << outcome.name << ": " << outcome.kernel;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
}

TEST(Kernels, ConvolutionsOfFewChannels) {
  const auto window = [](std::int32_t stride, std::int32_t padding, std::int32_t dilation) {
    return ops::Window{.kernel = {1, 1},
                       .stride = {stride, stride},
                       .padding = {padding, padding},
                       .padding_after = {padding, padding},
                       .dilation = {dilation, dilation},
                       .groups = 1};
  };
  std::vector<Case> cases;
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      add_convolutions(cases, type, {3, 1, 12, 9, 6, 5, 5, window(1, 2, 1)}, layout);  // lenet5's first
      add_convolutions(cases, type, {2, 6, 9, 7, 16, 5, 5, window(1, 0, 1)}, layout);  // and second
      add_convolutions(cases, type, {2, 3, 15, 13, 30, 3, 3, window(2, 1, 1)}, layout);
    }
  }
  add_convolutions(cases, DType::float16, {1, 2, 11, 10, 5, 3, 2, window(2, 1, 2)}, Layout::contiguous);
  add_convolutions(cases, DType::float32, {2, 3, 9, 9, 64, 3, 3, window(1, 1, 1)}, Layout::channels_last);
  add_convolutions(cases, DType::float32, {1, 1, 3, 3, 1, 3, 3, window(1, 0, 1)}, Layout::contiguous);
  add_convolutions(cases, DType::float32, {7, 2, 40, 36, 3, 3, 3, window(1, 1, 1)}, Layout::contiguous);
  add_convolutions(cases, DType::float32, {0, 2, 9, 8, 3, 3, 3, window(1, 1, 1)}, Layout::contiguous);
  for (Case& one : cases) put_on_tensor_cores(one);
  int others = 0;
  for (const Outcome& outcome : run(cases)) {
    if (outcome.kernel.find("small product") != 0U) ++others;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
  EXPECT_EQ(others, 6);  // those of 64 channels, and of no image
}

TEST(Kernels, StationaryProducts) {
  std::vector<Case> cases;
  const auto add = [&](DType type, std::int64_t rows, std::int64_t depth, std::int64_t columns, Layout right) {
    const Case plain = product(type, {rows, depth}, {depth, columns}, {rows, columns}, Layout::contiguous, right);
    cases.push_back(plain);
    for (const bool of_deviations : {false, true}) {
      if (of_deviations && rows > 1000 && type == DType::float16) continue;  // too large for the type
      Case sums = plain;
      sums.column_sums = true;
      sums.of_deviations = of_deviations;
      sums.name += of_deviations ? ", deviations of columns" : ", sums of columns";
      cases.push_back(sums);
    }
    Case bias = plain;
    bias.bias_axis = 1;
    cases.push_back(bias);
    Case residual = plain;
    residual.updates = true;
    if (rows > 1000) cases.push_back(residual);
  };
  for (const DType type : {DType::float16, DType::bfloat16}) {
    add(type, 130, 16, 64, Layout::contiguous);
    add(type, 64, 40, 40, Layout::reversed);  // lines along the depth, which ends within a slice
    add(type, 1, 8, 8, Layout::contiguous);
    add(type, 321, 32, 72, Layout::reversed);  // columns that end within a simdgroup's
    add(type, 5003, 24, 136, Layout::contiguous);
    add_convolutions(cases, type, {7, 16, 24, 19, 288, 1, 1, {.kernel = {1, 1}}}, Layout::channels_last);
    cases.pop_back();  // the weight's gradient
    cases.pop_back();  // of 288 channels
    cases.back().bias_axis = 1;
  }
  for (Case& one : cases) {
    put_on_tensor_cores(one);
    for (Array& input : one.inputs) input.margin = 8;
    one.tolerance *= one.of_deviations ? 4 : 1;
  }
  const std::size_t count = cases.size();
  for (std::size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    set_margin(cases.back(), 8);  // results in whole vectors
  }
  int others = 0;
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
    others += outcome.kernel != "stationary product";
  }
  // The small ones that add up nothing, results that are no vectors, and residuals.
  EXPECT_EQ(others, 2 * 2 * 4 * 2 + 2 + 2 * 2);
}

TEST(Kernels, ProductsOfWarpgroups) {
  std::vector<Case> cases;
  const auto add = [&](DType type, std::int64_t rows, std::int64_t depth, std::int64_t columns, Layout right) {
    const Case plain = product(type, {rows, depth}, {depth, columns}, {rows, columns}, Layout::contiguous, right);
    if (rows * columns > 100'000) cases.push_back(plain);  // smaller ones are small products
    for (const bool of_deviations : {false, true}) {
      if (of_deviations && type == DType::float16) continue;  // too large for the type
      cases.push_back(plain);
      cases.back().column_sums = true;
      cases.back().of_deviations = of_deviations;
      cases.back().name += of_deviations ? ", deviations of columns" : ", sums of columns";
      cases.back().tolerance *= of_deviations ? 4 : 1;
    }
    cases.push_back(plain);
    cases.back().bias_axis = 1;
  };
  for (const DType type : {DType::float16, DType::bfloat16}) {
    add(type, 130, 136, 64, Layout::contiguous);
    add(type, 1, 200, 8, Layout::reversed);      // a depth that ends within a slice
    add(type, 321, 136, 168, Layout::reversed);  // rows and columns that end within a tile
    add(type, 70, 264, 264, Layout::contiguous);
  }
  add(DType::bfloat16, 17029, 136, 8, Layout::contiguous);  // more tiles than threadgroups
  add_convolutions(cases, DType::bfloat16, {7, 136, 24, 19, 144, 1, 1, {.kernel = {1, 1}}}, Layout::channels_last);
  cases.pop_back();  // the weight's gradient
  for (Case& one : cases) {
    put_on_tensor_cores(one);
    put_on_warpgroups(one);
    set_margin(one, 8);
  }
  int others = 0;
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
    others += outcome.kernel != "warpgroup product";
  }
  EXPECT_EQ(others, 8);  // small products with a bias
}

TEST(Kernels, AttentionOnTensorCores) {
  std::vector<Case> cases;
  for (const DType type : {DType::float16, DType::bfloat16}) {
    add_attentions(cases, type, {{2, 3}, 33, 40, 16, 16});
    add_attentions(cases, type, {{1, 2}, 70, 75, 64, 64, true, {}, false, 0.1});
    add_attentions(cases, type, {{2}, 18, 70, 24, 40, false, Shape{2, 1, 70}, false, 0.25});
    add_attentions(cases, type, {{1, 2}, 130, 33, 5, 7, false, Shape{130, 33}, true, 0.2, false});
    add_attentions(cases, type, {{2}, 66, 35, 48, 64}, Layout::reversed);
    add_attentions(cases, type, {{3}, 37, 76, 32, 32, false, {}, false, 0.3});  // four numbers of a row at a time
    add_attentions(cases, type, {{}, 1, 1, 1, 1});
    add_attentions(cases, type, {{2}, 0, 5, 8, 8});
  }
  put_on_tensor_cores_in_vectors_too(cases);
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.kernel.find("fragments"), 0U) << outcome.name;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
}

TEST(Kernels, GradientsOfAttentionAtOnce) {
  std::vector<Case> cases;
  const auto add = [&](DType type, const AttentionShape& shape) {
    cases.push_back(attention_gradients_at_once(type, shape));
  };
  for (const DType type : {DType::float16, DType::bfloat16}) {
    add(type, {{2, 3}, 33, 40, 16, 16});
    add(type, {{1, 2}, 70, 75, 32, 32, true, {}, false, 0.1});
    add(type, {{2}, 18, 64, 24, 32, false, Shape{2, 1, 64}, false, 0.25});
    add(type, {{1, 2}, 130, 33, 5, 7, false, Shape{130, 33}, true, 0.2, false});
    add(type, {{2}, 45, 13, 48, 64});
    add(type, {{3}, 37, 76, 32, 32, false, {}, false, 0.3});
    add(type, {{}, 1, 1, 1, 1});
    add(type, {{2}, 0, 5, 8, 8});
  }
  put_on_tensor_cores_in_vectors_too(cases);
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.kernel.find("fragments at once"), 0U) << outcome.name;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
}

TEST(Kernels, AttentionOfEveryLayoutAndLength) {
  std::vector<Case> cases;
  for (const Layout layout : {Layout::reversed, Layout::spaced, Layout::flipped}) {
    add_attentions(cases, DType::float32, {{2, 2}, 9, 20, 12, 8, false, Shape{1, 2, 9, 20}}, layout);
  }
  add_attentions(cases, DType::float32, {{}, 1, 1, 1, 1});
  add_attentions(cases, DType::float32, {{1, 2, 1, 2}, 3, 5, 4, 4, true});
  add_attentions(cases, DType::float32, {{}, 20, 500, 8, 8, false, {}, false, 0.5});
  add_attentions(cases, DType::float32, {{}, 70, 3, 8, 8, true});
  add_attentions(cases, DType::float32, {{2}, 0, 5, 8, 8});
  add_attentions(cases, DType::float32, {{2}, 5, 0, 8, 8});
  add_attentions(cases, DType::float32, {{0}, 5, 4, 8, 8});
  add_attentions(cases, DType::float32, {{2}, 4, 5, 8, 8, false, Shape{1, 4, 5}, false, 0.5, false});
  expect_right(cases);
}

TEST(Kernels, AttentionOfWideHeadsTakesAnElementAThread) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    add_attentions(cases, type, {{2}, 5, 6, 130, 12, false, Shape{2, 1, 6}, false, 0.2});
    add_attentions(cases, type, {{2}, 6, 4, 8, 200, true, Shape{1, 6, 4}, true});
  }
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
    // The logsumexp alone reads no values: narrow keys are enough for a block.
    const bool narrow =
        outcome.name.starts_with("attention_logsumexp") && outcome.name.find(" of 8 ") < outcome.name.size();
    EXPECT_EQ(outcome.kernel == "elements", !narrow) << outcome.name << ": " << outcome.kernel;
  }
}

// The largest product is not the largest score then, by which kernels for tensor cores know their rows.
TEST(Kernels, AttentionOfANegativeScaleIsNoneOfTensorCores) {
  std::vector<Case> cases;
  add_attentions(cases, DType::float16, {{2}, 9, 20, 8, 8});
  for (Case& one : cases) {
    std::get<ops::Attention>(one.attributes).scale = -30;
    put_on_tensor_cores(one);
  }
  cases.resize(3);  // gradients have a logsumexp of their own
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.kernel.find("blocks"), 0U) << outcome.name;
    EXPECT_EQ(outcome.complaint, "") << outcome.name;
  }
}

TEST(Kernels, ANanStaysInItsRowOfAnAttention) {
  // A row's own trouble stays its own: NaN in one query leaves the other rows of its block as they are.
  std::vector<Case> cases;
  for (const DType type : {DType::float32, DType::float16}) {
    const std::size_t first = cases.size();
    add_attentions(cases, type, {{}, 20, 12, 8, 8});
    cases.resize(first + 3);
    for (std::size_t i = first; i < cases.size(); ++i) {
      cases[i].inputs[0].fill.nan_share = 0.01;
      if (type == DType::float16) put_on_tensor_cores(cases[i]);
    }
  }
  expect_right(cases);
}

TEST(Kernels, RowsByIndex) {
  std::vector<Case> cases;
  for (const DType type : all_types) {
    cases.push_back(rows_by_index(Op::take, type, {7, 5}, {11}, Layout::contiguous, false));
    cases.push_back(rows_by_index(Op::put, type, {7, 5}, {40}, Layout::contiguous, false));
    cases.push_back(rows_by_index(Op::put, type, {7, 5}, {40}, Layout::contiguous, true));
  }
  for (const Layout layout : {Layout::reversed, Layout::spaced, Layout::flipped}) {
    cases.push_back(rows_by_index(Op::take, DType::float32, {7, 5, 3}, {2, 11}, layout, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, 5, 3}, {4, 11}, layout, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, 5, 3}, {4, 11}, layout, true));
  }
  Case in_place = rows_by_index(Op::put, DType::float32, {7, 5}, {40}, Layout::contiguous, true);
  in_place.in_place = true;
  cases.push_back(in_place);
  // An index that is sorted in several blocks.
  cases.push_back(rows_by_index(Op::put, DType::float32, {50, 3}, {1400}, Layout::contiguous, true));
  cases.push_back(rows_by_index(Op::put, DType::float32, {5}, {0}, Layout::contiguous, true));
  cases.push_back(rows_by_index(Op::take, DType::float32, {5, 4}, {}, Layout::contiguous, false));
  expect_right(cases);
}

TEST(Kernels, SortsAreStableAndPutNanLast) {
  std::vector<Case> cases;
  for (const DType type : all_types) {
    cases.push_back(along_axis(Op::argsort, type, {3, 37}, 1, Layout::contiguous));
    cases.push_back(along_axis(Op::argsort, type, {3, 37}, 1, Layout::contiguous, true));
  }
  cases.push_back(along_axis(Op::argsort, DType::float32, {37, 3}, 0, Layout::contiguous));
  cases.push_back(along_axis(Op::argsort, DType::float32, {2, 600, 2}, 1, Layout::spaced));
  cases.push_back(along_axis(Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous, true));
  cases.push_back(along_axis(Op::argsort, DType::int64, {2100}, 0, Layout::flipped));
  cases.push_back(along_axis(Op::argsort, DType::float32, {4, 1}, 1, Layout::contiguous));
  cases.push_back(along_axis(Op::argsort, DType::float32, {0, 3}, 0, Layout::contiguous));
  expect_right(cases);
}

TEST(Kernels, SortsGiveTheFirstPlacesAlone) {
  std::vector<Case> cases;
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::boolean}) {
    cases.push_back(along_axis(Op::argsort, type, {3, 37}, 1, Layout::contiguous, false, 5));
    cases.push_back(along_axis(Op::argsort, type, {2, 1700}, 1, Layout::contiguous, true, 3));
  }
  cases.push_back(along_axis(Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous, false, 600));
  cases.push_back(along_axis(Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous, false, 1699));
  cases.push_back(along_axis(Op::argsort, DType::float32, {2, 600, 2}, 1, Layout::spaced, true, 1));
  cases.push_back(along_axis(Op::argsort, DType::int64, {2100}, 0, Layout::flipped, false, 513));
  expect_right(cases);
}

TEST(Kernels, RunningProducts) {
  std::vector<Case> cases;
  for (const DType type : all_types) {
    cases.push_back(along_axis(Op::cumprod, type, {5, 19}, 1, Layout::contiguous));
    cases.push_back(along_axis(Op::cumprod, type, {2, 1100}, 1, Layout::contiguous));
  }
  cases.push_back(along_axis(Op::cumprod, DType::float32, {40, 1030}, 0, Layout::spaced));
  cases.push_back(along_axis(Op::cumprod, DType::float32, {3, 2500}, 1, Layout::flipped));
  expect_right(cases);
}

TEST(Kernels, RunningSums) {
  std::vector<Case> cases;
  for (const DType type : all_types) {
    cases.push_back(along_axis(Op::cumsum, type, {5, 19}, 1, Layout::contiguous));
    cases.push_back(along_axis(Op::cumsum, type, {2, 1100}, 1, Layout::contiguous));
  }
  cases.push_back(along_axis(Op::cumsum, DType::float32, {70, 3}, 0, Layout::reversed));
  cases.push_back(along_axis(Op::cumsum, DType::float32, {40, 1030}, 0, Layout::spaced));
  cases.push_back(along_axis(Op::cumsum, DType::float32, {3, 2500}, 1, Layout::flipped));
  cases.push_back(along_axis(Op::cumsum, DType::float32, {0, 3}, 1, Layout::contiguous));
  expect_right(cases);
}

}  // namespace
}  // namespace russet::gputest
