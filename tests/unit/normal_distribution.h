#pragma once
// The standard normal distribution's functions, as devices compute them in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ops/table.h"

namespace russet::test {

/// What GELU multiplies by, and what its gradient adds.
struct NormalFunction {
  ops::Op op;
  double (*truth)(double);
  float last;         // tails are exact to some digits from -5.5 to here
  double wide_error;  // of itself, in float64, down to -30: of the density the square's rounding counts 450 times
};
inline const NormalFunction normal_functions[] = {
    {ops::Op::ndtr, [](double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }, std::numeric_limits<float>::infinity(),
     1e-15},
    {ops::Op::normal_density, [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }, 5.5F,
     450 * 0x1p-52},
};

inline void expect_normal(const NormalFunction& function, const std::vector<float>& x, const std::vector<float>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(y[i]));
      continue;
    }
    const double truth = function.truth(x[i]);
    ASSERT_NEAR(y[i], truth, 1e-7) << ops::row(function.op).name << " of " << x[i];
    if (x[i] > -5.5F && x[i] < function.last) {
      ASSERT_NEAR(y[i], truth, 4e-6 * truth) << ops::row(function.op).name << " of " << x[i];
    }
  }
}

}  // namespace russet::test
