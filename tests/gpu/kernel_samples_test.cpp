// A few cases of each kernel file, quick enough to be run for every mutant of it (tests/project/kernel_mutants.py).
#include <gtest/gtest.h>

#include "attention_at_once.h"
#include "gpu/kernel_cases.h"
#include "mutants_driver.h"
#include "works.h"

namespace russet::gputest {
namespace {

using ops::Op;

void expect_right(const std::vector<Case>& cases) {
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name << " by " << outcome.kernel;
  }
}

std::vector<Case> products() {
  return {product(DType::float32, {33, 47}, {47, 35}, {33, 35}, Layout::contiguous, Layout::contiguous),
          product(DType::float32, {40, 64}, {64, 32}, {40, 32}, Layout::reversed, Layout::reversed)};
}

TEST(KernelSamples, tile) {
  std::vector<Case> cases = products();
  // A simdgroup has 8, 16 or 32 columns, each of which has four lanes, two or one.
  for (const gpu::Tile tile : {gpu::Tile{32, 32}, gpu::Tile{32, 64}, gpu::Tile{64, 32}, gpu::Tile{64, 64}}) {
    cases.push_back(product(DType::float32, {96, 47}, {47, 75}, {96, 75}, Layout::contiguous, Layout::contiguous));
    cases.back().column_sums = true;
    cases.back().tile = tile;
  }
  cases.push_back(product(DType::float32, {70, 47}, {47, 19}, {70, 19}, Layout::contiguous, Layout::contiguous));
  cases.back().column_sums = true;
  add_attentions(cases, DType::float32, {{2}, 19, 21, 5, 20});
  add_attentions(cases, DType::float32, {{1}, 9, 11, 64, 64});  // no zeros behind its columns
  expect_right(cases);
}

TEST(KernelSamples, contraction) {
  std::vector<Case> cases = products();
  cases.push_back(
      product(DType::float32, {2, 3, 9, 600}, {2, 1, 600, 11}, {2, 3, 9, 11}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::int32, {2, 3, 5}, {2, 5, 4}, {2, 3, 4}, Layout::contiguous, Layout::contiguous));
  // A depth in many parts.
  cases.push_back(product(DType::float32, {5, 2600}, {2600, 7}, {5, 7}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::int32, {5, 2600}, {2600, 7}, {5, 7}, Layout::contiguous, Layout::contiguous));
  const ops::Window window{.stride = {2, 1}, .padding = {2, 1}, .padding_after = {1, 2}, .dilation = {1, 2}};
  add_convolutions(cases, DType::float32, {2, 9, 7, 8, 10, 3, 2, window}, Layout::channels_last);
  ops::Window grouped = window;
  grouped.groups = 3;
  add_convolutions(cases, DType::float32, {2, 3, 7, 8, 3, 3, 2, grouped}, Layout::contiguous);
  expect_right(cases);
}

TEST(KernelSamples, pool) {
  std::vector<Case> cases;
  const ops::Window window{
      .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 0}, .dilation = {1, 2}};
  add_pools(cases, DType::float32, {2, 3, 7, 6}, window, Layout::channels_last, false);
  add_pools(cases, DType::float32, {2, 3, 6, 8}, window, Layout::contiguous, false);
  add_pools(cases, DType::float32, {1, 2, 2, 3},
            {.kernel = {2, 2}, .stride = {2, 2}, .padding = {2, 2}, .padding_after = {3, 2}}, Layout::contiguous,
            false);
  for (const std::int64_t channels : {4, 6}) {
    add_pools(cases, DType::float32, {2, channels, 5, 7}, window, Layout::channels_last, true);
    for (std::size_t i = cases.size() - 3; i < cases.size(); ++i) set_margin(cases[i], 8);
    add_pools(cases, DType::bfloat16, {2, channels, 5, 7}, {.kernel = {2, 2}, .stride = {2, 2}}, Layout::channels_last,
              true);
    add_pools(cases, DType::float32, {1, channels, 6, 7},
              {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .padding_after = {1, 1}}, Layout::channels_last,
              true);
    // Windows of padding alone.
    add_pools(cases, DType::float32, {1, channels, 2, 3},
              {.kernel = {2, 2}, .stride = {2, 2}, .padding = {2, 2}, .padding_after = {3, 2}}, Layout::channels_last,
              true);
    // More positions between windows than a thread takes at once.
    add_pools(cases, DType::float32, {1, channels, 9, 8},
              {.kernel = {4, 3}, .stride = {3, 2}, .padding = {1, 1}, .padding_after = {1, 1}, .dilation = {1, 2}},
              Layout::channels_last, true);
  }
  // Channels that lie side by side in what is read alone, of one tensor or of two.
  for (const DType type : {DType::bfloat16, DType::float32}) {
    for (const bool shares : {false, true}) {
      add_pools(cases, type, {2, 8, 5, 7}, {.kernel = {2, 2}, .stride = {2, 2}}, Layout::channels_last, true);
      cases.pop_back();  // the gradient
      cases.back().output.layout = Layout::contiguous;
      cases.back().shares_input = shares;
      set_margin(cases.back(), 8);
    }
  }
  // Eight channels a thread, of maxima alone and of their gradients.
  add_pools(cases, DType::bfloat16, {2, 8, 5, 7}, {.kernel = {2, 2}, .stride = {2, 2}}, Layout::channels_last, true);
  for (std::size_t i = cases.size() - 2; i < cases.size(); ++i) {
    set_margin(cases[i], 8);
    cases[i].shares_input = true;
  }
  expect_right(cases);
}

TEST(KernelSamples, pool_with_positions) {
  std::vector<Case> cases;
  const ops::Window overlapping{
      .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 0}, .dilation = {1, 2}};
  const ops::Window apart{.kernel = {2, 2}, .stride = {2, 2}};
  for (const std::int64_t channels : {3, 4, 6, 8}) {
    for (const Layout layout : {Layout::channels_last, Layout::contiguous}) {
      add_pools_with_positions(cases, DType::float32, {2, channels, 7, 6}, overlapping, layout);
      add_pools_with_positions(cases, DType::bfloat16, {2, channels, 5, 7}, apart, layout);
    }
  }
  // Windows of padding alone.
  add_pools_with_positions(cases, DType::float32, {1, 4, 2, 3},
                           {.kernel = {2, 2}, .stride = {2, 2}, .padding = {2, 2}, .padding_after = {3, 2}},
                           Layout::channels_last);
  // Channels that lie side by side in what is read alone.
  for (const DType type : {DType::bfloat16, DType::float32}) {
    add_pools_with_positions(cases, type, {2, 8, 5, 7}, apart, Layout::channels_last);
    cases.pop_back();  // the gradient
    cases.back().output.layout = Layout::contiguous;
    cases.back().companions[0].output.layout = Layout::contiguous;
  }
  expect_right(cases);
}

TEST(KernelSamples, depthwise) {
  std::vector<Case> cases;
  ops::Window window{.padding = {1, 1}, .padding_after = {1, 1}, .groups = 6};
  add_convolutions(cases, DType::float32, {2, 6, 7, 11, 6, 3, 3, window}, Layout::channels_last);
  add_convolutions(cases, DType::float32, {1, 6, 5, 9, 6, 3, 3, window}, Layout::contiguous);  // by elements
  window.padding = window.padding_after = {0, 2};
  window.stride = {2, 2};
  add_convolutions(cases, DType::float32, {1, 6, 9, 20, 6, 2, 3, window}, Layout::channels_last);
  // More channels than a threadgroup takes, and lines enough for several slices of several parts.
  window = {.padding = {1, 1}, .padding_after = {1, 1}, .groups = 70};
  add_convolutions(cases, DType::float32, {3, 70, 9, 5, 70, 3, 3, window}, Layout::channels_last);
  expect_right(cases);
}

TEST(KernelSamples, small_product) {
  std::vector<Case> cases;
  const auto add = [&](const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
                       Layout right_layout) {
    cases.push_back(product(DType::float16, left, right, result, left_layout, right_layout));
  };
  // Depths that end within a slice, read in vectors and one by one; more rows than a threadgroup takes; batches.
  add({33, 84}, {84, 17}, {33, 17}, Layout::contiguous, Layout::reversed);
  add({40, 700}, {700, 24}, {40, 24}, Layout::reversed, Layout::contiguous);
  add({2, 530, 10}, {2, 10, 130}, {2, 530, 130}, Layout::contiguous, Layout::contiguous);
  // More rows than a threadgroup takes, depths of several parts, and a result whose columns lie apart.
  ops::Window window{.padding = {1, 1}, .padding_after = {1, 1}};
  for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
    add_convolutions(cases, DType::float32, {2, 9, 9, 11, 17, 3, 3, window}, layout);
    add_convolutions(cases, DType::float32, {1, 1, 14, 10, 5, 3, 2, window}, layout);
  }
  window.stride = {2, 2};
  add_convolutions(cases, DType::float32, {3, 3, 13, 9, 6, 2, 3, window}, Layout::channels_last);
  put_on_tensor_cores_in_vectors_too(cases);
  expect_right(cases);
}

TEST(KernelSamples, indexing) {
  std::vector<Case> cases;
  for (const Layout layout : {Layout::contiguous, Layout::spaced}) {
    cases.push_back(rows_by_index(Op::take, DType::float32, {7, 5}, {3, 4}, layout, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, 5}, {4, 10}, layout, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, 5}, {4, 10}, layout, true));
  }
  // As many elements as threads take at once, and one more.
  for (const std::int64_t width : {8, 9}) {
    cases.push_back(rows_by_index(Op::take, DType::float32, {7, width}, {3, 4}, Layout::contiguous, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, width}, {4, 10}, Layout::contiguous, false));
    cases.push_back(rows_by_index(Op::put, DType::float32, {7, width}, {4, 10}, Layout::contiguous, true));
  }
  for (Case one : std::vector<Case>(cases)) {
    // Indices that are out of range: rows of zeros are read, nothing is written.
    one.name += " out of range";
    one.stray_indices = true;
    cases.push_back(one);
  }
  for (const Layout layout : {Layout::contiguous, Layout::spaced, Layout::flipped}) {
    add_indexing(cases, DType::float32, layout);
  }
  expect_right(cases);
}

TEST(KernelSamples, attention) {
  std::vector<Case> cases;
  // Heads of two widths, so that blocks of results do not lie where blocks of operands lay.
  add_attentions(cases, DType::float32, {{1, 2}, 19, 21, 5, 100, false, Shape{1, 2, 1, 21}});
  add_attentions(cases, DType::float32, {{2}, 37, 35, 20, 7, true, {}, false, 0.3});
  // Keys that no row sees, more of them than a block has.
  add_attentions(cases, DType::float32, {{}, 9, 70, 8, 16, true, Shape{9, 70}, true});
  add_attentions(cases, DType::float32, {{2}, 5, 6, 130, 3, true, Shape{2, 5, 1}, false, 0.4, false});
  expect_right(cases);
}

TEST(KernelSamples, attention_fragments) {
  std::vector<Case> cases;
  add_attentions(cases, DType::float16, {{1, 2}, 37, 76, 20, 40, false, Shape{1, 2, 1, 76}, false, 0.3});
  add_attentions(cases, DType::float16, {{2}, 70, 67, 16, 7, true, {}, false, 0.3});
  add_attentions(cases, DType::float16, {{}, 9, 70, 8, 16, true, Shape{9, 70}, true, 0.4, false});
  // A row and a column less than whole blocks have, with a mask that ends there; without, a key of zeros would be by
  // far the nearest.
  add_attentions(cases, DType::float16, {{}, 31, 63, 8, 8, false, Shape{31, 63}});
  const auto add_forward = [&](const AttentionShape& shape, std::size_t input, Fill fill) {
    const std::size_t first = cases.size();
    add_attentions(cases, DType::float16, shape);
    cases.resize(first + 3);  // gradients have a logsumexp of their own
    for (std::size_t i = first; i < cases.size(); ++i) {
      cases[i].inputs[input == 1 ? 1 : cases[i].inputs.size() - 1].fill = fill;
      if (input == 1) cases[i].inputs[0].fill = {3, 4};
    }
  };
  constexpr std::size_t mask = 3;
  add_forward({{1}, 31, 63, 8, 24}, 1, {-4, -3});
  add_forward({{}, 4, 3, 8, 8, false, Shape{4, 3}}, mask, {0, 0});  // rows that see nothing
  // Scores that grow by more than powers may, from one block to the next, and scores of which none is near zero.
  add_forward({{}, 4, 130, 8, 8, false, Shape{4, 130}, true}, mask, {-60, 60});
  add_forward({{}, 4, 5, 8, 8, false, Shape{4, 5}, true}, mask, {-400, -300});
  put_on_tensor_cores_in_vectors_too(cases);
  expect_right(cases);
}

TEST(KernelSamples, attention_gradients_at_once) {
  std::vector<Case> cases;
  const auto add = [&](const AttentionShape& shape) {
    cases.push_back(attention_gradients_at_once(DType::float16, shape));
  };
  add({{1, 2}, 37, 44, 20, 30, false, Shape{1, 2, 1, 44}, false, 0.3});
  add({{2}, 70, 67, 16, 7, true, {}, false, 0.3});
  add({{}, 9, 70, 8, 16, true, Shape{9, 70}, true, 0.4, false});
  add({{3}, 64, 16, 32, 32});
  add({{2}, 16, 80, 24, 8});
  add({{2}, 18, 20, 5, 7});  // an odd number of columns
  put_on_tensor_cores_in_vectors_too(cases);
  expect_right(cases);
  // More threads than a block of the result has vectors, and fewer; one of several blocks.
  test::expect_deltas_of_result(DType::bfloat16, {2, 70, 75, 32, 24}, true);
  test::expect_deltas_of_result(DType::bfloat16, {1, 40, 14, 16, 64}, true);
  test::expect_sums(DType::bfloat16, {2, 70, 75, 32, 24}, true);
  test::expect_sums(DType::bfloat16, {1, 40, 14, 16, 64}, true);
  test::expect_sums(DType::bfloat16, {1, 48, 14, 16, 16}, true);  // half of a block of queries
  test::expect_bits_of_dropout(DType::bfloat16, {2, 33, 75, 32, 24});
  test::expect_bits_of_dropout(DType::bfloat16, {1, 40, 14, 16, 64});
  test::expect_keys_that_are_there(DType::bfloat16, {1, 40, 14, 16, 16});
  test::expect_keys_that_are_there(DType::bfloat16, {1, 40, 13, 16, 16});
}

TEST(KernelSamples, stationary_product) {
  std::vector<Case> cases;
  const auto add = [&](std::int64_t rows, std::int64_t depth, std::int64_t columns, Layout right) {
    for (const bool of_deviations : {false, true}) {
      cases.push_back(
          product(DType::bfloat16, {rows, depth}, {depth, columns}, {rows, columns}, Layout::contiguous, right));
      cases.back().column_sums = true;
      cases.back().of_deviations = of_deviations;
      cases.back().tolerance *= of_deviations ? 4 : 1;
      put_on_tensor_cores(cases.back());
      set_margin(cases.back(), 8);
    }
  };
  // Rows and columns that end within what a simdgroup takes, a depth within a slice; both orders of the right factor.
  add(130, 16, 64, Layout::contiguous);
  add(70, 40, 40, Layout::reversed);
  add(321, 24, 72, Layout::reversed);
  add(64, 8, 8, Layout::contiguous);
  expect_right(cases);
}

TEST(KernelSamples, warpgroup_product) {
  std::vector<Case> cases;
  const auto add = [&](std::int64_t rows, std::int64_t depth, std::int64_t columns, Layout right) {
    for (const bool sums : {false, true}) {
      cases.push_back(
          product(DType::bfloat16, {rows, depth}, {depth, columns}, {rows, columns}, Layout::contiguous, right));
      cases.back().column_sums = sums;
      put_on_tensor_cores(cases.back());
      put_on_warpgroups(cases.back());
      set_margin(cases.back(), 8);
    }
  };
  // Rows and columns that end within what a simdgroup takes, several tiles, more of them than threadgroups.
  add(130, 136, 168, Layout::contiguous);
  add(70, 136, 40, Layout::reversed);
  add(16910, 136, 8, Layout::contiguous);
  expect_right(cases);
}

TEST(KernelSamples, stem) {
  std::vector<Case> cases;
  const auto add = [&](DType type, const ConvolutionShape& shape) {
    const std::size_t first = cases.size();
    add_convolutions(cases, type, shape, Layout::channels_last);
    cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(first) + 1);  // the gradient of the image is no stem's
    cases.push_back(cases[first]);
    cases.back().bias_axis = 1;
    cases.push_back(cases[first]);
    cases.back().casts_image = true;
  };
  // Lines and images that end within what a simdgroup takes, several tiles of an image and of a threadgroup, lines
  // longer than what a thread has on the way; taps of several simdgroups, of one for each, and of pixels that are
  // shared.
  add(DType::float16, {2, 3, 11, 9, 40, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}});
  add(DType::bfloat16, {1, 3, 23, 20, 64, 5, 5, {.stride = {2, 2}, .padding = {2, 2}, .padding_after = {2, 2}}});
  add(DType::float16, {7, 1, 5, 18, 48, 2, 3, {.padding = {0, 2}, .padding_after = {1, 0}}});
  add(DType::bfloat16, {1, 4, 30, 7, 40, 1, 5, {.stride = {3, 1}}});
  add(DType::bfloat16, {1, 3, 4, 115, 40, 2, 2, {}});
  add(DType::float16, {270, 1, 3, 4, 40, 2, 3, {.padding = {1, 1}, .padding_after = {0, 1}}});
  // Lines so long that a threadgroup has one at a time.
  add(DType::bfloat16, {1, 1, 4, 1030, 16, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}});
  for (Case& one : cases) {
    put_on_tensor_cores(one);
    set_margin(one, 8);
  }
  // Infinities and NaN beside what is read.
  for (const Case& one : std::vector<Case>(cases)) {
    cases.push_back(one);
    cases.back().inputs[0].fill.nan_share = 0.001;
    cases.back().inputs[0].fill.infinity_share = 0.003;
  }
  expect_right(cases);
}

TEST(KernelSamples, sample_product) {
  std::vector<Case> cases;
  const auto add = [&](const ConvolutionShape& shape) {
    add_convolutions(cases, DType::float32, shape, Layout::contiguous);
  };
  // Windows that several threads share, lines, columns and depths that end within what a thread takes, images and
  // weights that threads bring in several rounds, more sums than threadgroup memory holds.
  add({2, 9, 7, 9, 10, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}});
  add({2, 8, 9, 7, 9, 3, 2, {.stride = {2, 3}, .padding = {1, 0}, .padding_after = {0, 1}}});
  add({1, 3, 36, 34, 5, 2, 3, {.dilation = {1, 2}}});
  for (const Layout right : {Layout::contiguous, Layout::reversed}) {
    cases.push_back(product(DType::float32, {3, 400}, {400, 140}, {3, 140}, Layout::contiguous, right));
    cases.push_back(product(DType::float32, {2, 52}, {52, 24}, {2, 24}, Layout::contiguous, right));
    cases.push_back(product(DType::float32, {2, 47}, {47, 35}, {2, 35}, Layout::contiguous, right));
  }
  put_on_samples(cases);
  for (Case& one : cases) set_margin(one, 8);
  expect_right(cases);
}

/// Weights that a launch by samples brings to threadgroup memory: in two rounds of its threads, and of less than whole
/// vectors.
TEST(KernelSamples, samples) {
  constexpr std::uint32_t brought = 17408;
  test::MutantsDriver driver;
  driver.adjust = [](gpu::Properties& properties) {
    properties.runs_samples = properties.has_bulk_copies = true;
    properties.group_memory -= brought;  // of which the machine has no more
    properties.sample_memory = brought;
  };
  test::Works works;
  works.product(2, 45, 96, false, true);
  works.product(2, 3, 5, false, false);
  test::Memory alone = works.memory;
  for (const compile::Step& step : works.list) test::run_on(driver, *driver.target().compile(step), alone, {});
  const compile::Bundle bundle{.members = works.list, .samples = 2, .handed_on = {}, .shared = {1, 4}};
  test::run_on(driver, *driver.target().compile(bundle), works.memory, {});
  for (const int result : {2, 5}) {
    const auto count = static_cast<std::size_t>(alone.bytes(result)) / sizeof(float);
    const auto wanted = test::read<float>(alone, result, count);
    const auto found = test::read<float>(works.memory, result, count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4) << result;
  }
}

TEST(KernelSamples, split_product) {
  std::vector<Case> cases;
  const auto add = [&](const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
                       Layout right_layout) {
    cases.push_back(product(DType::float32, left, right, result, left_layout, right_layout));
  };
  add({2, 132, 40}, {2, 40, 68}, {2, 132, 68}, Layout::contiguous, Layout::contiguous);
  add({20, 600}, {600, 132}, {20, 132}, Layout::reversed, Layout::reversed);
  for (const float tiny : {1e-36F, 1.0F}) {
    cases.push_back(product(DType::float32, {132, 36}, {36, 20}, {132, 20}, Layout::contiguous, Layout::reversed));
    cases.back().scale = 0;
    cases.back().inputs[0].fill = {-tiny, tiny};
    if (tiny == 1.0F) cases.back().inputs[1].fill.nan_share = 0.002;
  }
  // Epilogues of four columns at once and of one, the former of rows that cannot be split, too.
  for (const auto& [rows, columns] : {std::pair{132, 20}, {128, 32}, {150, 30}}) {
    cases.push_back(
        product(DType::float32, {rows, 36}, {36, columns}, {rows, columns}, Layout::contiguous, Layout::reversed));
    cases.back().bias_axis = 1;
    if (rows != 132) continue;
    cases.back().inputs[0].fill = {-2, 2, false, 0, 0.01};
    cases.back().scale = 0;
  }
  const std::size_t products = cases.size();
  ops::Window window{.padding = {1, 1}, .padding_after = {1, 1}};
  add_convolutions(cases, DType::float32, {1, 4, 7, 9, 8, 3, 3, window}, Layout::channels_last);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (i >= products) cases[i].inputs[1].layout = Layout::channels_last;
    put_on_warpgroups(cases[i]);
    set_margin(cases[i], 8);
  }
  expect_right(cases);
}

TEST(KernelSamples, sort) {
  expect_right({along_axis(Op::argsort, DType::float32, {3, 37}, 1, Layout::contiguous),
                along_axis(Op::argsort, DType::float32, {3, 64}, 1, Layout::contiguous, true),
                along_axis(Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous),
                along_axis(Op::argsort, DType::float32, {2, 1024}, 1, Layout::contiguous, true),
                along_axis(Op::argsort, DType::float32, {3, 64}, 1, Layout::contiguous, true, 5),
                along_axis(Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous, true, 5)});
}

TEST(KernelSamples, scan) {
  expect_right({along_axis(Op::cumsum, DType::float32, {5, 19}, 1, Layout::contiguous),
                along_axis(Op::cumsum, DType::float32, {2, 2100}, 1, Layout::contiguous),
                along_axis(Op::cumsum, DType::int64, {2, 1024}, 1, Layout::contiguous)});
}

}  // namespace
}  // namespace russet::gputest
