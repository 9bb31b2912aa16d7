// The oracle itself: values that were worked out by hand or printed by PyTorch, and identities that define transposes.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <bit>
#include <limits>

#include "base/philox.h"
#include "device/reference/target.h"
#include "unit/primitive_runner.h"

namespace russet {
namespace {

using ops::Op;
using russet::testing::floats;
using russet::testing::longs;
using russet::testing::Values;
using List = std::vector<double>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const russet::testing::PrimitiveRunner run{reference::target()};

Values of(DType dtype, const Shape& shape, List values) { return {dtype, shape, std::move(values)}; }
Values bools(const Shape& shape, List values) { return of(DType::boolean, shape, std::move(values)); }

void expect_near(const List& actual, const List& expected, double tolerance = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], expected[i]) << i;
    } else {
      EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << i;
    }
  }
}

struct Point {
  Op op;
  double x;
  double y;
};

TEST(Elementwise, KnownPoints) {
  const Point points[] = {
      {Op::neg, 2, -2},
      {Op::abs, -2.5, 2.5},
      {Op::sign, -7, -1},
      {Op::sign, nan_value, 0},
      {Op::floor, -1.5, -2},
      {Op::ceil, -1.5, -1},
      {Op::round, 2.5, 2},
      {Op::round, -3.5, -4},
      {Op::trunc, -1.7, -1},
      {Op::exp, 1, 2.718281828459045},
      {Op::expm1, 1e-10, 1.00000000005e-10},
      {Op::log, 10, 2.302585092994046},
      {Op::log, 0, -infinity},
      {Op::log1p, 1e-10, 9.9999999995e-11},
      {Op::sqrt, 2, 1.4142135623730951},
      {Op::sqrt, -1, nan_value},
      {Op::rsqrt, 4, 0.5},
      {Op::sin, 1, 0.8414709848078965},
      {Op::cos, 1, 0.5403023058681398},
      {Op::tan, 1, 1.5574077246549023},
      {Op::asin, 0.5, 0.5235987755982989},
      {Op::acos, 0.5, 1.0471975511965979},
      {Op::atan, 1, 0.7853981633974483},
      {Op::sinh, 1, 1.1752011936438014},
      {Op::cosh, 1, 1.5430806348152437},
      {Op::tanh, 1, 0.7615941559557649},
      {Op::erf, 1, 0.8427007929497149},
      {Op::ndtr, 1, 0.8413447460685429},
      {Op::ndtr, -10, 7.61985302416047e-24},
      {Op::normal_density, 1, 0.24197072451914337},
      {Op::normal_density, -10, 7.694598626706420e-23},
      {Op::sigmoid, 1, 0.7310585786300049},
      {Op::sigmoid, -1000, 0},
  };
  for (const Point& point : points) {
    SCOPED_TRACE(ops::row(point.op).name);
    expect_near(run(point.op, {of(DType::float64, {1}, {point.x})}).values, {point.y}, 1e-14);
  }
}

TEST(Elementwise, TwoFloats) {
  const Values a = floats({6}, {7, -7, 7, -7, 1, nan_value});
  const Values b = floats({6}, {2, 2, -2, -2, 0, 1});
  expect_near(run(Op::floor_divide, {a, b}).values, {3, -4, -4, 3, infinity, nan_value});
  expect_near(run(Op::fmod, {a, b}).values, {1, -1, 1, -1, nan_value, nan_value});
  expect_near(run(Op::maximum, {a, b}).values, {7, 2, 7, -2, 1, nan_value});
  expect_near(run(Op::minimum, {b, a}).values, {2, -7, -2, -7, 0, nan_value});
  expect_near(run(Op::lt, {a, b}).values, {0, 1, 0, 1, 0, 0});
  expect_near(run(Op::ne, {a, a}).values, {0, 0, 0, 0, 0, 1});
  expect_near(run(Op::pow, {floats({2}, {2, -8}), floats({2}, {0.5, 3})}).values, {std::sqrt(2.0), -512});
  expect_near(run(Op::atan2, {floats({2}, {1, -1}), floats({2}, {-1, 0})}).values, {2.356194490192345, -M_PI / 2});
  // As PyTorch: 1 // 0.1 in float32 is 9.
  expect_near(run(Op::floor_divide, {floats({1}, {1}), floats({1}, {0.1})}).values, {9});
}

TEST(Elementwise, IntegersAreExact) {
  const Values a = longs({4}, {7, -7, 7, -7});
  const Values b = longs({4}, {2, 2, -2, -2});
  EXPECT_EQ(run(Op::floor_divide, {a, b}).values, (List{3, -4, -4, 3}));
  EXPECT_EQ(run(Op::fmod, {a, b}).values, (List{1, -1, 1, -1}));
  EXPECT_THROW(run(Op::floor_divide, {a, longs({4}, {2, 2, 0, 2})}), ValueError);
  EXPECT_THROW(run(Op::fmod, {a, longs({4}, {2, 2, 0, 2})}), ValueError);
  EXPECT_EQ(run(Op::pow, {longs({6}, {3, -1, -1, 1, 2, 0}), longs({6}, {4, -3, -2, -9, -1, 0})}).values,
            (List{81, -1, 1, 1, 0, 1}));
  EXPECT_EQ(run(Op::round, {a}).values, a.values);
  const Values narrow = of(DType::int8, {3}, {127, -128, 100});
  EXPECT_EQ(run(Op::add, {narrow, of(DType::int8, {3}, {1, -1, 100})}).values, (List{-128, 127, -56}));
  EXPECT_EQ(run(Op::mul, {narrow, narrow}).values, (List{1, 0, 16}));
  EXPECT_EQ(run(Op::neg, {narrow}).values, (List{-127, -128, -100}));
  EXPECT_EQ(run(Op::abs, {narrow}).values, (List{127, -128, 100}));
  EXPECT_EQ(run(Op::neg, {of(DType::uint8, {2}, {1, 0})}).values, (List{255, 0}));
  EXPECT_EQ(run(Op::floor_divide, {narrow, of(DType::int8, {}, {-1})}).values, (List{-127, -128, -100}));
}

TEST(Elementwise, Bits) {
  const Values a = of(DType::int16, {4}, {-1, 12, 5, -256});
  EXPECT_EQ(run(Op::bitwise_not, {a}).values, (List{0, -13, -6, 255}));
  EXPECT_EQ(run(Op::bitwise_xor, {a, of(DType::int16, {}, {10})}).values, (List{-11, 6, 15, -246}));
  EXPECT_EQ(run(Op::shift_left, {a, of(DType::int16, {4}, {15, 16, -1, 1})}).values, (List{-32768, 0, 0, -512}));
  EXPECT_EQ(run(Op::shift_right, {a, of(DType::int16, {4}, {3, 2, 99, -1})}).values, (List{-1, 3, 0, -1}));
  EXPECT_EQ(run(Op::bitwise_not, {bools({2}, {0, 1})}).values, (List{1, 0}));
  EXPECT_EQ(run(Op::bitwise_and, {bools({2}, {0, 1}), bools({}, {1})}).values, (List{0, 1}));
  EXPECT_EQ(run(Op::add, {bools({2}, {0, 1}), bools({}, {1})}).values, (List{1, 1}));
}

TEST(Elementwise, Casts) {
  const auto cast = [](const Values& x, DType to) { return run(Op::cast, {x}, {}, {to, x.shape}).values; };
  EXPECT_EQ(cast(floats({4}, {1.9, -1.9, 0, -0.5}), DType::int32), (List{1, -1, 0, 0}));
  EXPECT_EQ(cast(floats({4}, {1.9, -1.9, 0, nan_value}), DType::boolean), (List{1, 1, 0, 1}));
  EXPECT_EQ(cast(longs({3}, {256, 257, -1}), DType::uint8), (List{0, 1, 255}));
  EXPECT_EQ(cast(longs({1}, {65520}), DType::float16), (List{infinity}));
  EXPECT_EQ(cast(floats({2}, {1.00390625, 1.01171875}), DType::bfloat16), (List{1, 1.015625}));
  EXPECT_EQ(cast(bools({2}, {1, 0}), DType::float64), (List{1, 0}));
}

TEST(Elementwise, BroadcastsAndStrides) {
  const Values column = floats({2, 1}, {10, 20});
  const Values row = floats({3}, {1, 2, 3});
  EXPECT_EQ(run(Op::add, {column, row}).values, (List{11, 12, 13, 21, 22, 23}));
  const Values transposed{DType::float32, {2, 3}, {-1, 1, 2, 3, 4, 5, 6}, {1, 2}, 1};
  EXPECT_EQ(run(Op::add, {transposed, floats({}, {0})}).values, (List{1, 3, 5, 2, 4, 6}));
  const Values reversed{DType::float32, {3}, {1, 2, 3}, {-1}, 2};
  EXPECT_EQ(run(Op::sub, {reversed, row}).values, (List{2, 0, -2}));
  EXPECT_EQ(run(Op::where, {bools({2, 1}, {1, 0}), row, floats({}, {9})}).values, (List{1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(run(Op::mul, {floats({0, 3}, {}), row}).shape, (Shape{0, 3}));
}

TEST(Sources, NumbersAndCounting) {
  EXPECT_EQ(run(Op::iota, {}, {}, {DType::float16, {2, 2}}).values, (List{0, 1, 2, 3}));
  EXPECT_EQ(run(Op::constant, {}, ops::Number{0.1, 7}, {DType::int8, {2}}).values, (List{7, 7}));
  EXPECT_EQ(run(Op::constant, {}, ops::Number{0.1, 7}, {DType::float32, {1}}).values, (List{0.1F}));
  EXPECT_EQ(run(Op::scalar, {}, {}, {DType::float64, {}}, std::bit_cast<std::uint64_t>(0.1)).values, List{0.1});
  EXPECT_EQ(run(Op::scalar, {}, {}, {DType::int64, {}}, static_cast<std::uint64_t>(-5)).values, List{-5});
}

TEST(Sources, RandomNumbersByPosition) {
  const List uniform = run(Op::uniform, {}, ops::Seed{11}, {DType::float32, {3, 3}}, 5).values;
  const List normal = run(Op::normal, {}, ops::Seed{11}, {DType::float32, {9}}, 5).values;
  const List bits = run(Op::random_bits, {}, ops::Seed{11}, {DType::int64, {9}}, 5).values;
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(uniform[i], base::uniform_at(11, 5, i));
    EXPECT_EQ(normal[i], base::normal_at(11, 5, i));
    EXPECT_EQ(bits[i], static_cast<double>(base::random_bits_at(11, 5, i)));
  }
}

TEST(Reductions, OverAnyAxes) {
  const Values x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(Op::sum, {x}, ops::Axes{0b01}).values, (List{5, 7, 9}));
  EXPECT_EQ(run(Op::sum, {x}, ops::Axes{0b10}).values, (List{6, 15}));
  EXPECT_EQ(run(Op::sum, {x}, ops::Axes{0b11}).values, List{21});
  EXPECT_EQ(run(Op::prod, {x}, ops::Axes{0b10}).values, (List{6, 120}));
  EXPECT_EQ(run(Op::sum, {x}, ops::Axes{0}).values, x.values);
  EXPECT_EQ(run(Op::sum, {floats({0, 2}, {})}, ops::Axes{0b01}).values, (List{0, 0}));
  EXPECT_EQ(run(Op::prod, {floats({0, 2}, {})}, ops::Axes{0b01}).values, (List{1, 1}));
  EXPECT_EQ(run(Op::sum, {bools({3}, {1, 0, 1})}, ops::Axes{1}).values, List{2});
  EXPECT_EQ(run(Op::sum, {of(DType::uint8, {2}, {255, 255})}, ops::Axes{1}).values, List{510});
  const Values ones = of(DType::bfloat16, {1000}, List(1000, 1));
  EXPECT_EQ(run(Op::sum, {ones}, ops::Axes{1}).values, List{1000});
}

TEST(Reductions, Extremes) {
  const Values x = floats({2, 3}, {3, 9, 9, -infinity, -infinity, -infinity});
  EXPECT_EQ(run(Op::amax, {x}, ops::Axes{0b10}).values, (List{9, -infinity}));
  EXPECT_EQ(run(Op::argmax, {x}, ops::Axes{0b10}).values, (List{1, 0}));
  EXPECT_EQ(run(Op::argmin, {x}, ops::Axes{0b10}).values, (List{0, 0}));
  EXPECT_EQ(run(Op::argmin, {x}, ops::Axes{0b11}).values, List{3});
  EXPECT_EQ(run(Op::argmax, {x}, ops::Axes{0b01}).values, (List{0, 0, 0}));
  const Values with_nan = floats({4}, {5, nan_value, 7, nan_value});
  expect_near(run(Op::amax, {with_nan}, ops::Axes{1}).values, {nan_value});
  expect_near(run(Op::amin, {with_nan}, ops::Axes{1}).values, {nan_value});
  EXPECT_EQ(run(Op::argmax, {with_nan}, ops::Axes{1}).values, List{1});
  EXPECT_EQ(run(Op::argmin, {with_nan}, ops::Axes{1}).values, List{1});
  EXPECT_EQ(run(Op::amin, {of(DType::int8, {3}, {4, -3, 5})}, ops::Axes{1}).values, List{-3});
}

TEST(Contractions, Matmul) {
  const Values a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Values b = floats({3, 2}, {7, 8, 9, 10, 11, 12});
  EXPECT_EQ(run(Op::matmul, {a, b}).values, (List{58, 64, 139, 154}));
  const Values transposed{DType::float32, {3, 2}, {7, 9, 11, 8, 10, 12}, {1, 3}};
  EXPECT_EQ(run(Op::matmul, {a, transposed}).values, (List{58, 64, 139, 154}));
  const Values rows = longs({2, 1, 1, 2}, {1, 2, 3, 4});
  const Values columns = longs({1, 2, 2, 1}, {1, 1, 10, 100});
  EXPECT_EQ(run(Op::matmul, {rows, columns}).values, (List{3, 210, 7, 430}));
  EXPECT_EQ(run(Op::matmul, {floats({2, 0}, {}), floats({0, 1}, {})}).values, (List{0, 0}));
}

TEST(Contractions, MatmulOfFactorsWithDifferentNumbersOfAxes) {
  const Values batches = floats({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Values two = floats({2, 2, 1}, {1, 1, 10, 100});
  const Values one = floats({2, 1}, {1, 10});
  const ops::Description result{DType::float32, {2, 2, 1, 1}};
  EXPECT_EQ(run.as(result, Op::matmul, {batches, two}).values, (List{3, 430, 11, 870}));
  EXPECT_EQ(run.as(result, Op::matmul, {batches, one}).values, (List{21, 43, 65, 87}));
  EXPECT_EQ(run.as({DType::float32, {2, 1, 1}}, Op::matmul, {floats({1, 2}, {2, 3}), two}).values, (List{5, 320}));
}

TEST(Contractions, ConvolutionByHand) {
  const Values x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Values w = floats({1, 1, 2, 2}, {1, 0, 0, -1});
  EXPECT_EQ(run(Op::convolution, {x, w}, ops::Window{}).values, (List{-4, -4, -4, -4}));
  const ops::Window padded{.padding = {1, 1}, .padding_after = {0, 0}};
  EXPECT_EQ(run(Op::convolution, {x, w}, padded).values, (List{-1, -2, -3, -4, -4, -4, -7, -4, -4}));
  const ops::Window dilated{.dilation = {2, 2}};
  EXPECT_EQ(run(Op::convolution, {x, w}, dilated).values, List{-8});
  const ops::Window grouped{.groups = 2};
  EXPECT_EQ(run(Op::convolution, {floats({1, 2, 1, 1}, {3, 5}), floats({2, 1, 1, 1}, {10, 100})}, grouped).values,
            (List{30, 500}));
}

Values numbered(const Shape& shape, std::uint64_t seed) {
  Values result = floats(shape, {});
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    result.values.push_back(std::floor(17 * base::uniform_at(seed, 0, static_cast<std::uint64_t>(i))) - 8);
  }
  return result;
}

double dot(const Values& a, const Values& b) {
  EXPECT_EQ(a.shape, b.shape);
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

const ops::Window windows[] = {
    {.kernel = {3, 2}},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .padding_after = {1, 1}},
    {.kernel = {2, 3}, .stride = {3, 1}, .padding = {1, 0}, .padding_after = {0, 2}, .dilation = {1, 2}},
    {.kernel = {3, 3}, .padding = {2, 2}, .padding_after = {2, 2}, .dilation = {2, 2}, .groups = 2},
    {.kernel = {1, 1}, .stride = {2, 2}, .groups = 4},
};

// <conv(x, w), g> = <x, conv_input(g, w)> = <w, conv_weight(x, g)>: integers, so exact.
TEST(Contractions, ConvolutionGradientsAreTransposes) {
  for (const ops::Window& window : windows) {
    const Values x = numbered({2, 4, 7, 8}, 1);
    const Values w = numbered({8, 4 / window.groups, window.kernel[0], window.kernel[1]}, 2);
    const Values y = run(Op::convolution, {x, w}, window);
    const Values g = numbered(y.shape, 3);
    const double expected = dot(y, g);
    EXPECT_EQ(dot(x, run(Op::convolution_input, {g, w}, window, {DType::float32, x.shape})), expected);
    EXPECT_EQ(dot(w, run(Op::convolution_weight, {x, g}, window, {DType::float32, w.shape})), expected);
  }
}

TEST(Windows, MaxPoolByHand) {
  const Values x = floats({1, 1, 3, 3}, {1, 5, 5, 4, 2, nan_value, -7, -8, -9});
  const Values positions = longs({1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const ops::Window window{.kernel = {2, 2}};
  expect_near(run(Op::max_pool, {x, x}, window).values, {5, nan_value, 4, nan_value});
  EXPECT_EQ(run(Op::max_pool, {x, positions}, window).values, (List{1, 5, 3, 5}));
  const Values gradient = floats({1, 1, 2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(run(Op::max_unpool, {x, gradient}, window).values, (List{0, 1, 0, 100, 0, 1010, 0, 0, 0}));
}

TEST(Windows, PaddingNeverWins) {
  const Values x = floats({1, 1, 2, 2}, {-4, -3, -2, -9});
  const Values positions = longs({1, 1, 2, 2}, {0, 1, 2, 3});
  const ops::Window padded{.kernel = {3, 3}, .stride = {3, 3}, .padding = {1, 1}, .padding_after = {2, 2}};
  EXPECT_EQ(run(Op::max_pool, {x, positions}, padded).values, List{2});
}

TEST(Windows, SumPoolAndItsTranspose) {
  const Values x = floats({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const ops::Window window{.kernel = {2, 2}, .padding = {0, 1}, .padding_after = {0, 1}};
  EXPECT_EQ(run(Op::sum_pool, {x}, window).values, (List{5, 12, 16, 9}));
  for (const ops::Window& each : windows) {
    const Values input = numbered({2, 3, 7, 8}, 4);
    const Values pooled = run(Op::sum_pool, {input}, each);
    const Values gradient = numbered(pooled.shape, 5);
    EXPECT_EQ(dot(input, run(Op::sum_unpool, {gradient}, each, {DType::float32, input.shape})), dot(pooled, gradient));
    const Values values = numbered(input.shape, 6);
    const Values chosen = run(Op::max_pool, {input, values}, each);
    EXPECT_EQ(dot(values, run(Op::max_unpool, {input, gradient}, each)), dot(chosen, gradient));
  }
}

TEST(Movement, Views) {
  const Values x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const ops::Description given{DType::float32, {3, 2}};
  EXPECT_EQ(run(Op::strided, {x}, ops::View{{1, 3}, 0, false}, given).values, (List{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run(Op::strided, {x}, ops::View{{-1, 0}, 4, false}, given).values, (List{5, 5, 4, 4, 3, 3}));
  EXPECT_EQ(run(Op::strided, {x}, ops::View{{1}, 0, true}, {DType::float32, {2}}, 3).values, (List{4, 5}));
  EXPECT_THROW(run(Op::strided, {x}, ops::View{{1}, 0, true}, {DType::float32, {2}}, 5), IndexError);
  EXPECT_THROW(run(Op::strided, {x}, ops::View{{1}, 0, true}, {DType::float32, {2}}, -1), IndexError);
  const Values value = floats({2, 2}, {10, 20, 30, 40});
  EXPECT_EQ(run(Op::overwrite, {x, value}, ops::View{{3, 1}, 1, false}).values, (List{1, 10, 20, 4, 30, 40}));
  EXPECT_EQ(run(Op::overwrite, {x, floats({}, {9})}, ops::View{{}, 0, true}, {}, 2).values, (List{1, 2, 9, 4, 5, 6}));
  // A transposed operand is read in its logical order.
  const Values transposed{DType::float32, {2, 3}, {1, 4, 2, 5, 3, 6}, {1, 2}};
  EXPECT_EQ(run(Op::strided, {transposed}, ops::View{{1}, 0, false}, {DType::float32, {6}}).values, x.values);
}

TEST(Indexing, TakeAndPut) {
  const Values x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto by_row = [](const Shape& index, bool accumulates = false) {
    return ops::Indexing{.lead = index, .accumulates = accumulates};
  };
  EXPECT_EQ(run(Op::take, {x, longs({2, 2}, {2, 0, 2, 1})}, by_row({2, 2})).values, (List{5, 6, 1, 2, 5, 6, 3, 4}));
  EXPECT_EQ(run(Op::take, {x, longs({}, {1})}, by_row({})).values, (List{3, 4}));
  EXPECT_EQ(run(Op::take, {floats({3, 0}, {}), longs({2}, {2, 1})}, by_row({2})).shape, (Shape{2, 0}));
  const Values index = longs({3}, {1, 0, 1});
  const Values rows = floats({3, 2}, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(run(Op::put, {x, rows, index}, by_row({3})).values, (List{30, 40, 50, 60, 5, 6}));
  EXPECT_EQ(run(Op::put, {x, rows, index}, by_row({3}, true)).values, (List{31, 42, 63, 84, 5, 6}));
  EXPECT_THROW(run(Op::take, {x, longs({1}, {3})}, by_row({1})), IndexError);
  EXPECT_THROW(run(Op::take, {x, longs({1}, {-1})}, by_row({1})), IndexError);
  EXPECT_THROW(run(Op::put, {x, rows, longs({3}, {0, 0, 9})}, by_row({3}, true)), IndexError);
  EXPECT_THROW(run(Op::take, {floats({0}, {}), longs({1}, {0})}, by_row({1})), IndexError);
}

TEST(Indexing, KnowsItsAxes) {
  constexpr std::int8_t tensor = ops::Indexing::by_tensor;
  const Values x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const ops::Indexing along{.lead = {2, 2}, .axes = 2, .sources = {0, tensor}};
  EXPECT_EQ(run(Op::take, {x, longs({2, 2}, {2, 0, 1, 1})}, along).values, (List{3, 1, 5, 5}));
  EXPECT_THROW(run(Op::take, {x, longs({2, 2}, {3, 0, 1, 1})}, along), IndexError);  // not the next row's first
  ops::Indexing both{.lead = {3}, .axes = 2, .sources = {tensor, tensor}};
  EXPECT_EQ(run(Op::take, {x, longs({3}, {1, 0, 1}), longs({1}, {2})}, both).values, (List{6, 3, 6}));
  EXPECT_THROW(run(Op::take, {x, longs({3}, {1, -1, 1}), longs({1}, {2})}, both), IndexError);
  both.from_end = true;
  EXPECT_EQ(run(Op::take, {x, longs({3}, {-1, -2, 1}), longs({1}, {-3})}, both).values, (List{4, 1, 4}));
  EXPECT_THROW(run(Op::take, {x, longs({3}, {-3, 0, 1}), longs({1}, {2})}, both), IndexError);
}

TEST(Ordering, ArgsortIsStable) {
  const Values x = floats({6}, {3, 1, nan_value, 3, -infinity, 1});
  EXPECT_EQ(run(Op::argsort, {x}, ops::Axes{1}).values, (List{4, 1, 5, 0, 3, 2}));
  EXPECT_EQ(run(Op::argsort, {x}, ops::Axes{1, true}).values, (List{2, 0, 3, 1, 5, 4}));
  const Values table = longs({2, 3}, {5, 1, 3, 2, 4, 0});
  EXPECT_EQ(run(Op::argsort, {table}, ops::Axes{0b01}).values, (List{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(run(Op::argsort, {table}, ops::Axes{0b10}).values, (List{1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(run(Op::argsort, {table}, ops::Axes{0b10, true, 2}).values, (List{0, 2, 1, 0}));
  EXPECT_EQ(run(Op::argsort, {table}, ops::Axes{0b01, false, 1}).values, (List{1, 0, 1}));
  EXPECT_EQ(run(Op::argsort, {floats({}, {1})}, ops::Axes{1}).values, List{0});
  EXPECT_EQ(run(Op::argsort, {floats({0, 2}, {})}, ops::Axes{1}).shape, (Shape{0, 2}));
}

TEST(Ordering, Cumsum) {
  const Values x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(Op::cumsum, {x}, ops::Axes{0b10}).values, (List{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run(Op::cumsum, {x}, ops::Axes{0b01}).values, (List{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run(Op::cumsum, {bools({3}, {1, 1, 1})}, ops::Axes{1}).values, (List{1, 2, 3}));
}

TEST(Ordering, Cumprod) {
  const Values x = floats({2, 3}, {1, 2, 3, 4, 0, 6});
  EXPECT_EQ(run(Op::cumprod, {x}, ops::Axes{0b10}).values, (List{1, 2, 6, 4, 0, 0}));
  EXPECT_EQ(run(Op::cumprod, {x}, ops::Axes{0b01}).values, (List{1, 2, 3, 4, 0, 18}));
}

TEST(Target, RunsPrimitivesAlone) {
  EXPECT_FALSE(reference::target().runs_groups());
  EXPECT_THROW(reference::target().compile(compile::Group{}), TypeError);
}

// The output may be the memory of an input.
TEST(Target, WorksInPlace) {
  compile::Primitive step;
  step.op = Op::overwrite;
  step.attributes = ops::View{{1}, 1, false};
  step.inputs = {{{0, DType::float32, 0, -1, {1}}, {3}}, {{1, DType::float32, 0, 0, {1}}, {2}}};
  step.output = step.inputs[0];
  float target[] = {1, 2, 3};
  float source[] = {0, 0, 8, 9};
  std::byte* slots[] = {reinterpret_cast<std::byte*>(target), reinterpret_cast<std::byte*>(source)};
  const std::uint64_t arguments[] = {2};
  reference::target().compile(step)->run({slots, arguments, nullptr});
  EXPECT_EQ(target[0], 1);
  EXPECT_EQ(target[1], 8);
  EXPECT_EQ(target[2], 9);
}

}  // namespace
}  // namespace russet
