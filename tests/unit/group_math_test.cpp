// What groups compute: accuracy of functions, corner values, reductions, random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/parallel.h"
#include "group_builder.h"
#include "normal_distribution.h"
#include "ops/table.h"
#include "russet/error.h"

namespace russet::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

class GroupMath : public testing::TestWithParam<cpu::tiles::InstructionSet> {
  Limit limit_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, GroupMath, testing::ValuesIn(instruction_sets));

/// op over contiguous values.
template <class T>
std::vector<T> elementwise(Op op, const std::vector<T>& a, const std::vector<T>& second = {}) {
  const auto count = static_cast<std::int64_t>(a.size());
  const DType type = dtype_of<T>();
  Builder b(Group::Kind::elementwise, {count}, 1);
  std::int16_t inputs[2] = {-1, -1};
  for (int i = 0; i < (second.empty() ? 1 : 2); ++i) {
    const int slot = b.memory.add(a.size() * sizeof(T));
    write(b.memory, slot, i == 0 ? a : second);
    inputs[i] = b.load(slot, type, {1});
  }
  const int out = b.memory.add(a.size() * sizeof(T));
  b.store(b.compute(op, type, inputs[0], inputs[1]), out, {1});
  run_kernel(b.group, b.memory, b.arguments);
  return read<T>(b.memory, out, a.size());
}

/// Distance of `value` from `truth` in units of T's last place at the truth.
template <class T>
double ulps(T value, long double truth) {
  if (std::isnan(truth)) return std::isnan(value) ? 0 : INFINITY;
  const T rounded = static_cast<T>(truth);
  if (value == rounded) return 0;
  if (std::isnan(value) || std::isinf(rounded)) return INFINITY;
  const long double unit =
      static_cast<long double>(std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity())) -
      static_cast<long double>(std::abs(rounded));
  return static_cast<double>(std::abs((static_cast<long double>(value) - truth) / unit));
}

using Truth = long double (*)(long double);

struct Accuracy {
  Op op;
  Truth truth;
  double limit;  // in units in the last place
  double wide_limit;
};

long double rsqrt(long double x) { return 1 / std::sqrt(x); }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

const Accuracy functions[] = {
    {Op::exp, std::exp, 1.5, 2},   {Op::expm1, std::expm1, 1, 4},     {Op::log, std::log, 2, 2},
    {Op::log1p, std::log1p, 1, 3}, {Op::sqrt, std::sqrt, 0.51, 0.51}, {Op::rsqrt, rsqrt, 1.5, 1.5},
    {Op::sin, std::sin, 3, 3},     {Op::cos, std::cos, 3, 3},         {Op::tan, std::tan, 1, 2},
    {Op::asin, std::asin, 3, 1},   {Op::acos, std::acos, 3, 1},       {Op::atan, std::atan, 3, 1},
    {Op::sinh, std::sinh, 1, 2},   {Op::cosh, std::cosh, 1, 2},       {Op::tanh, std::tanh, 1.5, 4},
    {Op::erf, std::erf, 1.5, 1},   {Op::sigmoid, sigmoid, 2.5, 2.5},
};

template <class T>
std::vector<T> samples() {
  std::mt19937_64 random(7);
  std::vector<T> values{0,
                        T(-0.0),
                        1,
                        -1,
                        T(0.5),
                        T(-0.5),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::lowest()};
  std::uniform_real_distribution<T> unit(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    values.push_back(unit(random));
    values.push_back(unit(random) * 10);
    values.push_back(unit(random) * 120);
    values.push_back(std::exp2(unit(random) * (sizeof(T) == 4 ? 120 : 1000)) * (i % 2 == 0 ? 1 : -1));
  }
  return values;
}

template <class T>
void check_accuracy() {
  const std::vector<T> x = samples<T>();
  for (const Accuracy& function : functions) {
    const std::vector<T> y = elementwise(function.op, x);
    double worst = 0;
    T where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], function.truth(x[i]));
      if (error > worst) {
        worst = error;
        where = x[i];
      }
    }
    EXPECT_LE(worst, sizeof(T) == 4 ? function.limit : function.wide_limit)
        << ops::row(function.op).name << " at " << where;
  }
}

TEST_P(GroupMath, Float32FunctionsAreAccurate) { check_accuracy<float>(); }
TEST_P(GroupMath, Float64FunctionsAreAccurate) { check_accuracy<double>(); }

TEST_P(GroupMath, NormalDistributionIsWithinATenMillionth) {
  std::vector<float> x = samples<float>();
  for (int i = -8000; i <= 8000; ++i) x.push_back(static_cast<float>(i) * 0.001F);
  const std::vector<double> wide{-30, -1, 0, 2};
  for (const NormalFunction& function : normal_functions) {
    expect_normal(function, x, elementwise(function.op, x));
    const std::vector<double> y = elementwise(function.op, wide);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const double truth = function.truth(wide[i]);
      EXPECT_NEAR(y[i], truth, function.wide_error * truth + 1e-300);
    }
  }
}

template <class T>
void check_pairs(Op op, long double (*truth)(long double, long double), double limit) {
  std::mt19937_64 random(9);
  std::vector<T> corners{0,
                         T(-0.0),
                         1,
                         -1,
                         2,
                         -2,
                         3,
                         -3,
                         T(0.5),
                         T(-0.5),
                         T(1e30),
                         T(-1e30),
                         T(1e-30),
                         std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> a;
  std::vector<T> b;
  for (const T x : corners) {
    for (const T y : corners) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  std::uniform_real_distribution<T> number(-20, 20);
  for (int i = 0; i < 20000; ++i) {
    a.push_back(i % 3 == 0 ? std::abs(number(random)) : number(random));
    b.push_back(i % 2 == 0 ? std::round(number(random)) : number(random));
  }
  const std::vector<T> y = elementwise(op, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double wanted = truth(a[i], b[i]);
    ASSERT_LE(ulps(y[i], wanted), limit) << ops::row(op).name << "(" << a[i] << ", " << b[i] << ") = " << y[i]
                                         << " instead of " << wanted;
    if (wanted == 0) {
      ASSERT_EQ(std::signbit(y[i]), std::signbit(wanted)) << ops::row(op).name << "(" << a[i] << ", " << b[i] << ")";
    }
  }
}

TEST_P(GroupMath, FunctionsOfTwoNumbersAreAccurate) {
  check_pairs<float>(Op::pow, std::pow, 1);
  check_pairs<double>(Op::pow, std::pow, 1);
  check_pairs<float>(Op::atan2, std::atan2, 1);
  check_pairs<double>(Op::atan2, std::atan2, 1);
  check_pairs<float>(Op::fmod, std::fmod, 0);
  check_pairs<float>(
      Op::div, [](long double a, long double b) { return a / b; }, 0.51);
}

template <class T>
void expect_values(const std::vector<T>& got, const std::vector<T>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(wanted[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
        continue;
      }
    }
    EXPECT_EQ(got[i], wanted[i]) << "element " << i;
  }
}

template <class T>
std::vector<bool> compare(Op op, const std::vector<T>& a, const std::vector<T>& second) {
  Builder b(Group::Kind::elementwise, {static_cast<std::int64_t>(a.size())}, 1);
  const int slots[] = {b.memory.add(a.size() * sizeof(T)), b.memory.add(a.size() * sizeof(T)), b.memory.add(a.size())};
  write(b.memory, slots[0], a);
  write(b.memory, slots[1], second);
  const auto x = b.load(slots[0], dtype_of<T>(), {1});
  b.store(b.compute(op, DType::boolean, x, b.load(slots[1], dtype_of<T>(), {1})), slots[2], {1});
  run_kernel(b.group, b.memory, b.arguments);
  const auto bytes = read<std::uint8_t>(b.memory, slots[2], a.size());
  return {bytes.begin(), bytes.end()};
}

template <class T>
void check_comparisons() {
  const std::vector<T> numbers{0,
                               1,
                               2,
                               static_cast<T>(-1),
                               std::numeric_limits<T>::max(),
                               std::numeric_limits<T>::lowest(),
                               std::numeric_limits<T>::quiet_NaN()};
  for (const T y : numbers) {
    const std::vector<T> other(numbers.size(), y);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(compare(Op::eq, numbers, other)[i], numbers[i] == y);
      EXPECT_EQ(compare(Op::ne, numbers, other)[i], numbers[i] != y) << numbers[i] << " " << y;
      EXPECT_EQ(compare(Op::lt, numbers, other)[i], numbers[i] < y);
      EXPECT_EQ(compare(Op::le, numbers, other)[i], numbers[i] <= y);
    }
  }
}

TEST_P(GroupMath, ComparisonsOfEveryLane) {
  check_comparisons<float>();
  check_comparisons<double>();
  check_comparisons<std::int32_t>();
  check_comparisons<std::int64_t>();
}

TEST_P(GroupMath, CornersAreAsInPyTorch) {
  using I = std::vector<std::int32_t>;
  using L = std::vector<std::int64_t>;
  using F = std::vector<float>;
  expect_values(elementwise(Op::round, F{0.5F, 1.5F, 2.5F, -0.5F, -1.5F}), F{0, 2, 2, 0, -2});
  expect_values(elementwise(Op::sign, F{-3, 0, 2, nan}), F{-1, 0, 1, 0});
  expect_values(elementwise(Op::maximum, F{1, nan, 1, nan}, F{nan, 1, 2, nan}), F{nan, nan, 2, nan});
  expect_values(elementwise(Op::minimum, F{1, nan, 1, nan}, F{nan, 1, 2, nan}), F{nan, nan, 1, nan});
  expect_values(elementwise(Op::floor_divide, F{7, -7, 7, -7, 1, 0}, F{2, 2, -2, -2, 0, 0}), F{3, -4, -4, 3, inf, nan});
  expect_values(elementwise(Op::fmod, F{7, -7, 7, 1}, F{3, 3, -3, 0}), F{1, -1, 1, nan});
  expect_values(elementwise(Op::floor_divide, I{7, -7, 7, -7, INT32_MIN}, I{2, 2, -2, -2, -1}),
                I{3, -4, -4, 3, INT32_MIN});
  expect_values(elementwise(Op::floor_divide, L{7, -7, INT64_MIN}, L{2, 2, -1}), L{3, -4, INT64_MIN});
  expect_values(elementwise(Op::fmod, I{7, -7, 7, INT32_MIN}, I{3, 3, -3, -1}), I{1, -1, 1, 0});
  for (const Op op : {Op::floor_divide, Op::fmod}) {
    EXPECT_THROW(elementwise(op, I{7, 8}, I{2, 0}), ValueError);
    EXPECT_THROW(elementwise(op, L{7, 8}, L{2, 0}), ValueError);
  }
  expect_values(elementwise(Op::pow, I{3, -2, 2, 1, -1, 2, 0}, I{4, 3, 31, -5, -3, -1, 0}),
                I{81, -8, INT32_MIN, 1, -1, 0, 1});
  expect_values(elementwise(Op::pow, L{3, -2}, L{39, 63}), L{4052555153018976267, INT64_MIN});
  expect_values(elementwise(Op::shift_left, I{1, 1, 1, -1}, I{31, 32, -1, 4}), I{INT32_MIN, 0, 0, -16});
  expect_values(elementwise(Op::shift_right, I{-8, -8, 8, 8}, I{1, 40, 2, 40}), I{-4, -1, 2, 0});
  expect_values(elementwise(Op::sigmoid, F{-100, 100, -inf, inf, 0}), F{std::exp(-100.0F), 1, 0, 1, 0.5F});
}

template <class To>
std::vector<To> cast_to(const std::vector<float>& from) {
  Builder b(Group::Kind::elementwise, {static_cast<std::int64_t>(from.size())}, 1);
  const int in = b.memory.add(from.size() * sizeof(float));
  write(b.memory, in, from);
  const int out = b.memory.add(from.size() * sizeof(To));
  b.store(b.compute(Op::cast, dtype_of<To>(), b.load(in, DType::float32, {1})), out, {1});
  run_kernel(b.group, b.memory, b.arguments);
  return read<To>(b.memory, out, from.size());
}

TEST_P(GroupMath, CastsTruncateAndRoundToEven) {
  expect_values(cast_to<std::int32_t>({1.9F, -1.9F, 3e9F, -3e9F, nan}), {1, -1, INT32_MIN, INT32_MIN, INT32_MIN});
  expect_values(cast_to<std::int64_t>({1.9F, -1.9F, 1e30F, nan}), {1, -1, INT64_MIN, INT64_MIN});
  expect_values(cast_to<std::int8_t>({1.9F, 200, -200, 1e20F}), {1, -56, 56, 0});
  expect_values(cast_to<std::uint8_t>({1.9F, 300, -2, 255}), {1, 44, 254, 255});
  std::mt19937 random(3);
  std::vector<float> values{0, -0.0F, inf, -inf, 1e-40F, 3.4e38F, 65519, 65520, 1e-8F};
  for (int i = 0; i < 10000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  const auto bfloats = cast_to<bfloat16>(values);
  const auto halves = cast_to<float16>(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bfloats[i])) && std::isnan(static_cast<float>(halves[i])));
    } else {
      EXPECT_EQ(bfloats[i].bits, bfloat16(values[i]).bits) << values[i];
      EXPECT_EQ(halves[i].bits, float16(values[i]).bits) << values[i];
    }
  }
}

/// One reduction over [kept, reduced] in row-major order (kind row), or of [reduced, kept] (kind column).
template <class T, class Out>
std::vector<Out> reduced(Group::Kind kind, Op op, const std::vector<T>& values, std::int64_t kept,
                         std::int64_t length) {
  const bool row = kind == Group::Kind::row;
  Builder b(kind, row ? Shape{kept, length} : Shape{length, kept}, 1);
  const int in = b.memory.add(values.size() * sizeof(T));
  write(b.memory, in, values);
  const int out = b.memory.add(static_cast<std::size_t>(kept) * sizeof(Out));
  const auto x = b.load(in, dtype_of<T>(), row ? Strides{length, 1} : Strides{kept, 1});
  b.store(b.reduce(op, dtype_of<Out>(), x), out, row ? Strides{1, 0} : Strides{0, 1}, Extent::reduced);
  run_kernel(b.group, b.memory, b.arguments);
  return read<Out>(b.memory, out, static_cast<std::size_t>(kept));
}

TEST_P(GroupMath, SumsOfAMillionAreAccurateWhateverTheThreads) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<float> values(1 << 20);
  for (float& value : values) value = unit(random);
  for (const std::int64_t kept : {std::int64_t{1}, std::int64_t{3}, std::int64_t{10}, std::int64_t{300}}) {
    const auto length = static_cast<std::int64_t>(values.size()) / kept;
    for (const auto kind : {Group::Kind::row, Group::Kind::column}) {
      std::vector<double> truth(static_cast<std::size_t>(kept), 0.0);
      for (std::int64_t i = 0; i < kept * length; ++i) {
        const std::int64_t at = kind == Group::Kind::row ? i / length : i % kept;
        truth[static_cast<std::size_t>(at)] += values[static_cast<std::size_t>(i)];
      }
      std::vector<float> first;
      for (const int threads : {1, 2, 5}) {
        const int before = base::thread_count();
        base::set_thread_count(threads);
        const auto sums = reduced<float, float>(kind, Op::sum, values, kept, length);
        base::set_thread_count(before);
        if (first.empty()) first = sums;
        EXPECT_EQ(first, sums);
        for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i] / truth[i], 1, 1e-6);
      }
    }
  }
}

TEST_P(GroupMath, DeviationsAreThoseFromTheTrueMean) {
  for (const std::int64_t size : {1, 2, 3, 40, 9000, 70000}) {
    for (const std::int64_t kept : {1, 5, 64}) {
      for (const double mean : {0.0, -3000.0}) {
        std::vector<float> values(static_cast<std::size_t>(kept * size));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<float>(mean + static_cast<double>(i * 7919 % 1009) / 256);
        }
        for (const auto kind : {Group::Kind::row, Group::Kind::column}) {
          const bool rows = kind == Group::Kind::row;
          const auto found = reduced<float, float>(kind, Op::squared_deviations, values, kept, size);
          ASSERT_EQ(found.size(), static_cast<std::size_t>(kept));
          for (std::int64_t k = 0; k < kept; ++k) {
            const auto at = [&](std::int64_t i) {
              return values[static_cast<std::size_t>(rows ? k * size + i : i * kept + k)];
            };
            long double sum = 0;
            long double squares = 0;
            for (std::int64_t i = 0; i < size; ++i) sum += at(i);
            for (std::int64_t i = 0; i < size; ++i) {
              const long double distance = at(i) - sum / static_cast<long double>(size);
              squares += distance * distance;
            }
            EXPECT_NEAR(found[static_cast<std::size_t>(k)], squares, 2e-6 * squares)
                << (rows ? "row" : "column") << " of " << size << ", number " << k << " of " << kept;
          }
        }
      }
    }
  }
  const std::vector<float> infinite{1, inf, 3, 4};
  EXPECT_TRUE(std::isnan(reduced<float, float>(Group::Kind::row, Op::squared_deviations, infinite, 1, 4)[0]));
  EXPECT_TRUE(std::isnan(reduced<float, float>(Group::Kind::column, Op::squared_deviations, infinite, 1, 4)[0]));
}

TEST_P(GroupMath, ExtremesFindTheFirstAndNaNWins) {
  for (const std::int64_t size : {5, 40, 9000, 70000}) {
    std::vector<float> values(static_cast<std::size_t>(size), 1);
    values[3] = 7;
    values[static_cast<std::size_t>(size) - 1] = 7;
    values[1] = -2;
    values[2] = -2;
    for (const auto kind : {Group::Kind::row, Group::Kind::column}) {
      using L = std::vector<std::int64_t>;
      using F = std::vector<float>;
      EXPECT_EQ((reduced<float, std::int64_t>(kind, Op::argmax, values, 1, size)), L{3});
      EXPECT_EQ((reduced<float, std::int64_t>(kind, Op::argmin, values, 1, size)), L{1});
      EXPECT_EQ((reduced<float, float>(kind, Op::amax, values, 1, size)), F{7});
      EXPECT_EQ((reduced<float, float>(kind, Op::amin, values, 1, size)), F{-2});
      std::vector<float> with_nan = values;
      with_nan[static_cast<std::size_t>(size) - 2] = nan;
      EXPECT_EQ((reduced<float, std::int64_t>(kind, Op::argmax, with_nan, 1, size)), L{size - 2});
      EXPECT_TRUE(std::isnan(reduced<float, float>(kind, Op::amin, with_nan, 1, size)[0]));
      const std::vector<float> low(static_cast<std::size_t>(size), -inf);
      EXPECT_EQ((reduced<float, std::int64_t>(kind, Op::argmax, low, 1, size)), L{0});
    }
  }
  const std::vector<std::int64_t> integers{5, INT64_MAX, INT64_MIN, INT64_MAX};
  EXPECT_EQ((reduced<std::int64_t, std::int64_t>(Group::Kind::row, Op::argmax, integers, 1, 4)),
            std::vector<std::int64_t>{1});
  EXPECT_EQ((reduced<std::int64_t, std::int64_t>(Group::Kind::row, Op::amin, integers, 1, 4)),
            std::vector<std::int64_t>{INT64_MIN});
}

TEST_P(GroupMath, ProductsOfEveryLane) {
  EXPECT_EQ((reduced<float, float>(Group::Kind::row, Op::prod, {1, 2, 3, 4, 5, 6}, 2, 3)),
            (std::vector<float>{6, 120}));
  EXPECT_EQ((reduced<double, double>(Group::Kind::column, Op::prod, {1, 2, 3, 4, 5, 6}, 2, 3)),
            (std::vector<double>{15, 48}));
  EXPECT_EQ((reduced<std::int8_t, std::int64_t>(Group::Kind::row, Op::prod, {100, 100, 100, 100}, 1, 4)),
            (std::vector<std::int64_t>{100000000}));
  EXPECT_EQ((reduced<float, float>(Group::Kind::row, Op::prod, {}, 2, 0)), (std::vector<float>{1, 1}));
  EXPECT_EQ((reduced<float, float>(Group::Kind::column, Op::sum, {}, 2, 0)), (std::vector<float>{0, 0}));
}

TEST_P(GroupMath, RandomNumbersAreThoseOfTheirPositions) {
  constexpr std::int64_t count = 5001;
  constexpr std::uint64_t seed = 0x123456789abcdefULL;
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{3}, (std::int64_t{1} << 34) - 2000}) {
    for (const Op op : {Op::uniform, Op::normal, Op::random_bits}) {
      Builder b(Group::Kind::elementwise, {count}, 1);
      b.arguments = {77};
      const DType type = op == Op::random_bits ? DType::int64 : DType::float32;
      const auto at =
          b.push({.kind = Kind::index, .dtype = DType::int64, .access = b.access({-1, DType::int64, start, -1, {1}})});
      const auto value =
          b.push({.kind = Kind::random, .op = op, .dtype = type, .inputs = {at, -1, -1}, .argument = 0, .seed = seed});
      const int out = b.memory.add(count * size_of(type));
      b.store(value, out, {1});
      run_kernel(b.group, b.memory, b.arguments);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto position = static_cast<std::uint64_t>(start + i);
        const std::byte* memory = b.memory.slot(out) + i * static_cast<std::int64_t>(size_of(type));
        const Number got = load_number(type, memory);
        if (op == Op::random_bits) {
          ASSERT_EQ(got.integer, base::random_bits_at(seed, 77, position));
        } else if (op == Op::uniform) {
          ASSERT_EQ(got.real, base::uniform_at(seed, 77, position));
        } else {
          ASSERT_LE(ulps(static_cast<float>(got.real), base::normal_at(seed, 77, position)), 2);
        }
      }
    }
  }
}

/// Groups round every 16-bit value as if it had been stored.
TEST_P(GroupMath, SixteenBitValuesAreRoundedAtEachInstruction) {
  Builder b(Group::Kind::elementwise, {1000}, 1);
  const int in = b.memory.add(2000);
  const int out = b.memory.add(2000);
  std::vector<bfloat16> values;
  for (int i = 0; i < 1000; ++i) values.emplace_back(0.01F * static_cast<float>(i));
  write(b.memory, in, values);
  const auto x = b.load(in, DType::bfloat16, {1});
  const auto product = b.compute(Op::mul, DType::bfloat16, x, x);
  b.store(b.compute(Op::sub, DType::bfloat16, product, x), out, {1});
  Memory wanted = b.memory;
  run_reference(b.group, wanted, b.arguments);
  run_kernel(b.group, b.memory, b.arguments);
  EXPECT_TRUE(b.memory == wanted);
}

/// A group may overwrite what it loads, element by element, and read the old value in any instruction.
TEST_P(GroupMath, UpdatesInPlaceReadOldValues) {
  for (const std::int64_t count : {std::int64_t{10}, std::int64_t{4096}}) {
    Builder b(Group::Kind::elementwise, {count}, 1);
    const int p = b.memory.add(static_cast<std::size_t>(count) * 4);
    const int q = b.memory.add(static_cast<std::size_t>(count) * 4);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    write(b.memory, p, values);
    const auto x = b.load(p, DType::float32, {1});
    const auto one = b.constant(DType::float32, 1, 1);
    b.store(b.compute(Op::add, DType::float32, x, one), p, {1});
    b.store(x, q, {1});
    run_kernel(b.group, b.memory, b.arguments);
    EXPECT_EQ(read<float>(b.memory, q, values.size()), values);
    for (float& value : values) value += 1;
    EXPECT_EQ(read<float>(b.memory, p, values.size()), values);
  }
}

TEST_P(GroupMath, AMissingOperatorIsATypeError) {
  Builder b(Group::Kind::elementwise, {4}, 1);
  const int slot = b.memory.add(32);
  b.store(b.compute(Op::erf, DType::int64, b.load(slot, DType::int64, {1})), slot, {1});
  EXPECT_THROW(cpu::make_group_kernel(b.group), TypeError);
}

}  // namespace
}  // namespace russet::test
