// Pools, indexing, ordering and movement on the CPU against loops in double, written here.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/error.h>

#include "device/cpu/workspace.h"
#include "unit/cpu_case.h"

namespace russet::testing {
namespace {

// ---- pools

bool larger(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

/// `small_layout` is that of an element for each window.
void check_pools(const Window& w, const Shape& shape, DType type, Layout layout, Layout small_layout) {
  Shape small = shape;
  for (int i = 0; i < 2; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    small[i + 2] = ops::window_output(shape[i + 2], w.kernel[axis], w.stride[axis], w.padding[axis],
                                      w.padding_after[axis], w.dilation[axis]);
  }
  Array x(type, shape, layout);
  Array v(DType::int64, shape, layout);
  Array g(type, small, small_layout);
  Array pooled(DType::int64, small, small_layout);
  Array own(type, small, small_layout);
  Array sums(type, small, small_layout);
  Array unpooled(type, shape, layout);
  Array spread(type, shape, layout);
  for (Array* array : {&x, &v, &g}) array->randomise();
  const auto taps = [&](auto&& visit) {
    for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane)
      for (std::int64_t oh = 0; oh < small[2]; ++oh)
        for (std::int64_t ow = 0; ow < small[3]; ++ow)
          for (std::int64_t i = 0; i < w.kernel[0]; ++i)
            for (std::int64_t j = 0; j < w.kernel[1]; ++j) {
              const std::int64_t h = oh * w.stride[0] - w.padding[0] + i * w.dilation[0];
              const std::int64_t u = ow * w.stride[1] - w.padding[1] + j * w.dilation[1];
              if (h < 0 || h >= shape[2] || u < 0 || u >= shape[3]) continue;
              visit(static_cast<std::size_t>((plane * small[2] + oh) * small[3] + ow),
                    static_cast<std::size_t>((plane * shape[2] + h) * shape[3] + u));
            }
  };
  std::vector<std::int64_t> best(g.values.size(), -1);
  std::vector<double> summed(g.values.size(), 0);
  std::vector<double> scattered(x.values.size(), 0);
  taps([&](std::size_t window, std::size_t at) {
    if (best[window] < 0 || larger(x.values[at], x.values[static_cast<std::size_t>(best[window])])) {
      best[window] = static_cast<std::int64_t>(at);
    }
    summed[window] += x.values[at];
    scattered[at] += g.values[window];
  });
  std::vector<double> chosen(g.values.size(), 0);
  std::vector<double> maxima(g.values.size(), 0);
  std::vector<double> back(x.values.size(), 0);
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (best[i] < 0) continue;
    const auto at = static_cast<std::size_t>(best[i]);
    chosen[i] = v.values[at];
    maxima[i] = x.values[at];
    back[at] += g.values[i];
  }
  for (auto* values : {&summed, &scattered, &back}) {
    for (double& value : *values) value = wrapped(value, type);
  }
  const std::string what = std::string(name_of(type)) + to_string(shape) + " layout " + std::to_string(int(layout));
  run(step(Op::max_pool, w), {&x, &v}, pooled);
  expect_close(pooled, chosen, 0, "max_pool " + what);
  run(step(Op::max_pool, w), {&x, &x}, own);
  expect_close(own, maxima, 0, "max_pool of itself " + what);
  run(step(Op::max_unpool, w), {&x, &g}, unpooled);
  expect_close(unpooled, back, tolerance_of(type), "max_unpool " + what);
  run(step(Op::sum_pool, w), {&x}, sums);
  expect_close(sums, summed, tolerance_of(type), "sum_pool " + what);
  run(step(Op::sum_unpool, w), {&g}, spread);
  expect_close(spread, scattered, tolerance_of(type), "sum_unpool " + what);
}

TEST(CpuPool, EveryTypeAndLayout) {
  for (const DType type : numeric) {
    for (const Layout layout :
         {Layout::row_major, Layout::channels_last, Layout::batch_last, Layout::permuted, Layout::gaps}) {
      for (int round = 0; round < 8; ++round) {
        Window w;
        for (std::size_t i = 0; i < 2; ++i) {
          w.kernel[i] = static_cast<std::int32_t>(pick(1, 3));
          w.stride[i] = static_cast<std::int32_t>(pick(1, 3));
          w.padding[i] = static_cast<std::int32_t>(pick(0, 1));
          w.padding_after[i] = static_cast<std::int32_t>(pick(0, 3));
          w.dilation[i] = static_cast<std::int32_t>(pick(1, 2));
        }
        // Fewer lanes than a vector has, and some more.
        const std::int64_t images = layout == Layout::batch_last ? pick(1, 40) : pick(1, 3);
        const std::int64_t channels = layout == Layout::channels_last ? pick(1, 40) : pick(1, 9);
        check_pools(w, {images, channels, pick(5, 11), pick(5, 11)}, type, layout,
                    round % 2 == 0 ? layout : Layout::row_major);
      }
    }
  }
  check_pools({{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}, {0, 3, 8, 8}, DType::float32, Layout::row_major,
              Layout::row_major);
}

TEST(CpuPool, NanIsLargestAndTheFirstMaximumWins) {
  Array x(DType::float32, {1, 1, 2, 4});
  Array v(DType::float32, {1, 1, 2, 4});
  Array y(DType::float32, {1, 1, 1, 2});
  x.values = {1, std::nan(""), 3, 3, std::nan(""), 9, 3, 3};
  v.values = {0, 1, 2, 3, 4, 5, 6, 7};
  x.write();
  v.write();
  run(step(Op::max_pool, Window{{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}), {&x, &v}, y);
  EXPECT_EQ(y.values, (std::vector<double>{1, 2}));
}

// ---- indexing, ordering

TEST(CpuIndexing, TakeAndPut) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::uint8, DType::float64}) {
    for (const Layout layout : {Layout::row_major, Layout::permuted, Layout::gaps}) {
      const std::int64_t rows = pick(1, 7);
      const Shape row{pick(1, 4), pick(1, 40)};
      Array x(type, {rows, row[0], row[1]}, layout);
      Array index(DType::int64, {3, 5}, layout);
      Array y(type, {3, 5, row[0], row[1]}, layout);
      x.randomise();
      for (double& value : index.values) value = static_cast<double>(pick(0, rows - 1));
      index.write();
      run(step(Op::take, ops::Indexing{.lead = {3, 5}}), {&x, &index}, y);
      const auto size = static_cast<std::size_t>(row[0] * row[1]);
      std::vector<double> expected;
      for (const double i : index.values) {
        for (std::size_t j = 0; j < size; ++j) expected.push_back(x.values[static_cast<std::size_t>(i) * size + j]);
      }
      expect_close(y, expected, 0, "take");
      for (const bool add : {false, true}) {
        Array result(type, x.shape, layout);
        y.randomise();
        std::vector<double> sums = x.values;
        for (std::size_t i = 0; i < index.values.size(); ++i) {
          for (std::size_t j = 0; j < size; ++j) {
            double& element = sums[static_cast<std::size_t>(index.values[i]) * size + j];
            element = wrapped(add ? element + y.values[i * size + j] : y.values[i * size + j], type);
          }
        }
        run(step(Op::put, ops::Indexing{.lead = {3, 5}, .accumulates = add}), {&x, &y, &index}, result);
        expect_close(result, sums, tolerance_of(type), "put");
      }
    }
  }
}

TEST(CpuIndexing, OutOfRangeNamesIndexAxisAndSize) {
  Array x(DType::float32, {4, 2});
  Array index(DType::int64, {3});
  Array y(DType::float32, {3, 2});
  Array result(DType::float32, {4, 2});
  x.randomise();
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const IndexError& error) {
      return error.what();
    }
    return "";
  };
  for (const int wrong : {4, -1}) {
    index.values = {0, static_cast<double>(wrong), 1};
    index.write();
    const std::string expected =
        fmt::format(": index {} is out of range for dimension 0 of size 4 (number 1 of 3)", wrong);
    EXPECT_EQ(message([&] { run(step(Op::take, ops::Indexing{.lead = {3}}), {&x, &index}, y); }), "take" + expected);
    EXPECT_EQ(message([&] {
                run(step(Op::put, ops::Indexing{.lead = {3}}), {&x, &y, &index}, result);
              }),
              "put" + expected);
  }
  // Each axis by itself: position 2 of axis 1 is no element of the next row.
  Array elements(DType::float32, {3});
  const ops::Indexing along{.lead = {3, 1}, .axes = 2, .sources = {0, ops::Indexing::by_tensor}};
  Array columns(DType::int64, {3, 1});
  columns.values = {0, 2, 1};
  columns.write();
  EXPECT_EQ(message([&] {
              run(step(Op::take, along), {&x, &columns}, elements);
            }),
            "take: index 2 is out of range for dimension 1 of size 2 (number 1 of 3)");
}

TEST(CpuOrdering, ArgsortIsStableAndNanIsLargest) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::uint8, DType::boolean}) {
    for (const bool descending : {false, true}) {
      for (const std::int64_t length : {0, 1, 7, 100, 40000}) {
        Array x(type, {2, length, 3}, length < 1000 ? Layout::gaps : Layout::row_major);
        Array order(DType::int64, x.shape);
        x.randomise();
        if (is_floating(type) && length == 100) x.at({1, 50, 2}) = x.at({1, 30, 2}) = std::nan("");
        x.write();
        run(step(Op::argsort, ops::Axes{2, descending}), {&x}, order);
        for (std::int64_t a = 0; a < 2; ++a) {
          for (std::int64_t b = 0; b < 3; ++b) {
            std::vector<std::int64_t> expected(static_cast<std::size_t>(length));
            std::iota(expected.begin(), expected.end(), 0);
            std::stable_sort(expected.begin(), expected.end(), [&](std::int64_t i, std::int64_t j) {
              return descending ? larger(x.at({a, i, b}), x.at({a, j, b})) : larger(x.at({a, j, b}), x.at({a, i, b}));
            });
            for (std::int64_t i = 0; i < length; ++i) {
              ASSERT_EQ(order.at({a, i, b}), static_cast<double>(expected[static_cast<std::size_t>(i)]));
            }
          }
        }
      }
    }
  }
}

/// Against the whole order, for elements in random order, many of them equal, and in the worst order.
TEST(CpuOrdering, TheFirstOfAnOrderAreSelected) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::boolean}) {
    for (const bool descending : {false, true}) {
      for (const auto& [length, first] :
           {std::pair<std::int64_t, std::int64_t>{8, 1}, {100, 24}, {100, 99}, {40000, 7}, {40000, 9000}}) {
        for (const bool ordered : {false, true}) {
          Array x(type, {2, length, 3}, length < 1000 ? Layout::gaps : Layout::row_major);
          Array order(DType::int64, {2, first, 3});
          Array whole(DType::int64, x.shape);
          x.randomise();
          if (is_floating(type)) x.at({1, length / 2, 2}) = x.at({1, length / 3, 2}) = std::nan("");
          for (std::int64_t i = 0; ordered && i < length; ++i) {
            x.at({0, i, 1}) = static_cast<double>(descending ? i : -i) / 256;
          }
          x.write();
          run(step(Op::argsort, ops::Axes{2, descending}), {&x}, whole);
          run(step(Op::argsort, ops::Axes{2, descending, first}), {&x}, order);
          for (std::int64_t i = 0; i < first; ++i) {
            for (std::int64_t a = 0; a < 2; ++a) {
              for (std::int64_t b = 0; b < 3; ++b) ASSERT_EQ(order.at({a, i, b}), whole.at({a, i, b})) << length;
            }
          }
        }
      }
    }
  }
}

// ---- what groups compute

TEST(CpuPlain, ReductionsThatNoGroupTook) {
  for (const DType type : {DType::float32, DType::int32, DType::float64}) {
    Array x(type, {5, 6, 7}, Layout::permuted);
    x.randomise();
    for (const std::uint32_t mask : {1U, 2U, 4U, 5U, 7U}) {
      Shape kept = x.shape;
      for (int axis = 0; axis < 3; ++axis) {
        if ((mask >> axis) & 1U) kept[axis] = 1;
      }
      Array y(type == DType::int32 ? DType::int64 : type, kept);
      run(step(Op::sum, ops::Axes{mask, false}), {&x}, y);
      std::vector<double> expected(y.values.size(), 0);
      std::size_t position = 0;
      Strides steps = contiguous_strides(kept);
      for (int axis = 0; axis < 3; ++axis) {
        if (kept[axis] == 1) steps[axis] = 0;
      }
      cpu::walk(
          x.shape, [&](std::int64_t at) { expected[static_cast<std::size_t>(at)] += x.values[position++]; }, steps);
      expect_close(y, expected, tolerance_of(type), "sum");
    }
  }
}

TEST(CpuPlain, StridedAndOverwrite) {
  for (const Layout layout : {Layout::row_major, Layout::gaps}) {
    Array x(DType::float32, {6, 8}, layout);
    Array y(DType::float32, {4, 3}, layout);
    x.randomise();
    run(step(Op::strided, ops::View{{1, 16}, 2, false}), {&x}, y);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 3; ++j) expected.push_back(x.values[2 + i + 16 * j]);
    }
    expect_close(y, expected, 0, "strided");
    Array z(DType::float32, {6, 8}, layout);
    y.randomise();
    run(step(Op::overwrite, ops::View{{1, 16}, 0, true}, 0), {&x, &y}, z, {}, 3);
    expected = x.values;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 3; ++j) expected[3 + i + 16 * j] = y.values[i * 3 + j];
    }
    expect_close(z, expected, 0, "overwrite");
  }
}

// ---- workspace

TEST(Workspace, ArraysOfWorkersAreApartByTheLinesThatAProcessorFetchesAhead) {
  for (const std::int64_t count : {1, 32, 192, 1000}) {
    cpu::Workspace workspace;
    const auto sums = workspace.add<float>(count, 3);
    EXPECT_GE(sums.step, static_cast<std::size_t>(count) * sizeof(float) + 256);
    const auto behind = workspace.add<float>(count);
    EXPECT_EQ(behind.offset, sums.offset + 3 * sums.step);
    EXPECT_GE(workspace.bytes(), behind.offset + static_cast<std::size_t>(count) * sizeof(float));
  }
}

}  // namespace
}  // namespace russet::testing
