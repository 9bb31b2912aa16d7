// RUSSET_SIMULATOR=coarse: arithmetic no better than Metal documents.
#include <cmath>
#include <cstdlib>
#include <functional>

#include "launcher.h"

namespace russet::simulator {
namespace {

const int set = setenv("RUSSET_SIMULATOR", "coarse", 1);

constexpr std::size_t count = 4096;

std::vector<float> run(const std::string& expression, const std::vector<float>& x) {
  const Compiled compiled(
      "KERNEL(tested, 64, IN(float, in, 0), OUT(float, y, 1)) { const float x = in[group_id.x * 64 + "
      "thread_id]; y[group_id.x * 64 + thread_id] = " +
          expression + "; }",
      "tested", true);
  std::vector<float> y(x.size());
  EXPECT_EQ(reports_of(compiled.dispatch(static_cast<std::uint32_t>(x.size() / 64), 64, {in(x), out(y)})),
            std::vector<std::string>{});
  return y;
}

struct Function {
  const char* name;
  const char* expression;
  double ulps;
  double low, high;
  std::function<double(double)> exact;
};

void PrintTo(const Function& function, std::ostream* stream) { *stream << function.name; }

class Coarse : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(
    Functions, Coarse,
    testing::Values(Function{"exp", "precise::exp(x)", 4, -80, 80, [](double x) { return std::exp(x); }},
                    Function{"log", "precise::log(x)", 4, 0.1, 90, [](double x) { return std::log(x); }},
                    Function{"sin", "precise::sin(x)", 4, -9, 9, [](double x) { return std::sin(x); }},
                    Function{"tan", "precise::tan(x)", 6, -9, 9, [](double x) { return std::tan(x); }},
                    Function{"tanh", "precise::tanh(x)", 5, -9, 9, [](double x) { return std::tanh(x); }},
                    Function{"atan2", "precise::atan2(x, 0.7f)", 6, -9, 9,
                             [](double x) { return std::atan2(x, static_cast<double>(0.7f)); }},
                    Function{"pow", "precise::pow(x, 1.7f)", 16, 0.1, 9,
                             [](double x) { return std::pow(x, static_cast<double>(1.7f)); }}),
    [](const auto& info) { return info.param.name; });

TEST_P(Coarse, FunctionsAreOffByWhatIsDocumentedAndNoMore) {
  ASSERT_EQ(set, 0);
  const Function& function = GetParam();
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(function.low + (function.high - function.low) * static_cast<double>(i) / count);
  }
  const std::vector<float> y = run(function.expression, x);
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = function.exact(static_cast<double>(x[i]));
    if (exact == 0) continue;
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) / ulp);
  }
  EXPECT_LE(worst, function.ulps);
  EXPECT_GE(worst, 0.8 * function.ulps);
  EXPECT_EQ(run(function.expression, x), y);
}

TEST(Coarse, WhatIsCorrectlyRoundedStaysSo) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i) * 0.37f;
  const std::vector<float> y = run("precise::sqrt(x) / 3.0f", x);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], std::sqrt(x[i]) / 3.0f);
}

TEST(Coarse, SumsOfASimdgroupHaveAnotherOrder) {
  std::vector<float> x(64, 0);
  x[0] = 1e8f;
  x[16] = -1e8f;  // what a tree over halves adds first
  x[1] = x[17] = 1;
  EXPECT_EQ(run("simd_sum(x)", x)[0], 0);
}

TEST(Coarse, ProductsOfMatricesHaveAnotherOrder) {
  const Compiled compiled(R"(
    KERNEL(tested, 32, IN(float, x, 0), OUT(float, y, 1)) {
      simdgroup_float8x8 a;
      simdgroup_load(a, x);
      const simdgroup_float8x8 ones = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
      simdgroup_float8x8 sums = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      simdgroup_multiply_accumulate(sums, a, ones, sums);
      simdgroup_store(sums, y);
    })",
                          "tested", true);
  std::vector<float> x(64, 0), y(64);
  x[0] = 1;
  x[6] = 1e8f;
  x[7] = -1e8f;  // from the last: 1 is added to 0
  x[8] = 1e8f;
  x[9] = -1e8f;
  x[10] = 1;  // from the last: 1 is lost
  EXPECT_EQ(reports_of(compiled.dispatch(1, 32, {in(x), out(y)})), std::vector<std::string>{});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[8], 0);
}

}  // namespace
}  // namespace russet::simulator
