// arange, linspace and logspace have every digit of their type on every device, also where there is no float64.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/functional/creation.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

/// A range, and what its elements are in float64.
struct Range {
  std::string name;
  Tensor made;
  std::function<double(std::int64_t)> at;
  double relative = 0;   // error that is allowed
  double cancelled = 0;  // by how much it may be off where terms cancel, which those of the first element do not
};

/// Half of the last digit; a little more where float32 was rounded to a narrower type.
double half_digit(DType dtype) {
  if (dtype == DType::float32) return std::numeric_limits<float>::epsilon() / 2;
  return (dtype == DType::float16 ? 0x1p-11 : 0x1p-8) * (1 + 0x1p-12);
}

double on_line(double start, double end, std::int64_t steps, std::int64_t i) {
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  if (i < std::max<std::int64_t>(steps / 2, steps == 1)) return std::fma(static_cast<double>(i), step, start);
  return std::fma(static_cast<double>(i + 1 - steps), step, end);
}

class Ranges : public testing::TestWithParam<std::string> {
 protected:
  Range counted(double start, double end, double step, DType dtype = DType::float32) const {
    return {fmt::format("arange({}, {}, {})", start, end, step), arange(start, end, step, {dtype, device}),
            [=](std::int64_t i) { return std::fma(static_cast<double>(i), step, start); }, half_digit(dtype),
            1e-15 * (std::abs(start) + std::abs(end))};
  }
  Range line(double start, double end, std::int64_t steps, DType dtype = DType::float32) const {
    return {fmt::format("linspace({}, {}, {})", start, end, steps), linspace(start, end, steps, {dtype, device}),
            [=](std::int64_t i) { return on_line(start, end, steps, i); }, half_digit(dtype),
            1e-15 * (std::abs(start) + std::abs(end))};
  }
  Range powers(double start, double end, std::int64_t steps, double base) const {
    return {fmt::format("logspace({}, {}, {}, {})", start, end, steps, base),
            logspace(start, end, steps, base, {DType::float32, device}),
            [=](std::int64_t i) { return std::pow(base, on_line(start, end, steps, i)); }, 1.5e-6};
  }

  const Device device{GetParam()};
};

TEST_P(Ranges, HaveTheDigitsOfTheirType) {
  const std::uint64_t fallbacks = counters().fallbacks;
  // Recorded together, so that a device that compiles kernels compiles one.
  const Range ranges[] = {counted(0, 1, 0.001),
                          counted(-1, 1, 0.1),
                          counted(1.5, 4, 0.7),
                          counted(1e6, 1e6 + 3, 1e-3),
                          counted(-1e-30, 2e-30, 1.7e-34),
                          counted(5, -3e4, -0.3),
                          counted(0.25, 1, 1e30),
                          counted(0.5, 0.5, 1),
                          counted(-3, 3, 0.01, DType::float16),
                          counted(-3, 3, 0.01, DType::bfloat16),
                          line(0, 1, 5),
                          line(-1, 1, 100001),
                          line(3, -3, 4),
                          line(1e-12, 1e12, 7),
                          line(1e38, 3e38, 9),
                          line(0.1, 0.7, 1),
                          line(0.1, 0.7, 0),
                          line(-2, 5, 99, DType::bfloat16),
                          powers(0, 2, 5, 10),
                          powers(-30, 38, 1001, 10),
                          powers(-120, 120, 777, 2),
                          powers(-5, 5, 11, 0.3)};
  const Tensor counted_zero = arange(-1.0, 1.0, 0.1, {.device = device});
  const Tensor zero = linspace(-1, 1, 1000001, {.device = device});
  const Tensor infinite_ends = linspace(-1e300, 1e300, 3, {.device = device});
  const Tensor infinite_powers = logspace(0, 80, 3, 10, {.device = device});
  for (const Range& range : ranges) {
    const std::vector<double> found = range.made.to_vector<double>();
    for (std::int64_t i = 0; i < range.made.numel(); ++i) {
      const double wanted = range.at(i);
      const double allowed = range.relative * std::abs(wanted) + (i == 0 ? 0 : range.cancelled);
      ASSERT_NEAR(found[static_cast<std::size_t>(i)], wanted, allowed) << range.name << " at " << i;
    }
  }
  EXPECT_EQ(counted_zero.to_vector<float>()[10], 0);
  EXPECT_EQ(zero.to_vector<float>()[500000], 0);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(infinite_powers.to_vector<float>(), (std::vector<float>{1, infinity, infinity}));
  EXPECT_EQ(infinite_ends.to_vector<float>(), (std::vector<float>{-infinity, 0, infinity}));
  EXPECT_EQ(counters().fallbacks, fallbacks);
}

INSTANTIATE_TEST_SUITE_P(Devices, Ranges, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
