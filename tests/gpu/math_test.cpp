// Functions of generated kernels against the host's in double, and random numbers against base/philox.h.
#include <cmath>
#include <random>

#include "base/philox.h"
#include "ops/table.h"
#include "run_group.h"
#include "unit/normal_distribution.h"

namespace russet::test {
namespace {

std::vector<float> run_unary(Op op, const std::vector<float>& x) {
  MachineDriver driver;
  const auto count = static_cast<std::int64_t>(x.size());
  Builder b(Group::Kind::elementwise, {count}, 1);
  for (int i = 0; i < 2; ++i) b.memory.add(x.size() * 4);
  write(b.memory, 0, x);
  b.store(b.compute(op, DType::float32, b.load(0, DType::float32, {1})), 1, {1});
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  return read<float>(b.memory, 1, x.size());
}

std::vector<float> run_binary(Op op, const std::vector<float>& x, const std::vector<float>& y) {
  MachineDriver driver;
  const auto count = static_cast<std::int64_t>(x.size());
  Builder b(Group::Kind::elementwise, {count}, 1);
  for (int i = 0; i < 3; ++i) b.memory.add(x.size() * 4);
  write(b.memory, 0, x);
  write(b.memory, 1, y);
  const auto left = b.load(0, DType::float32, {1});
  b.store(b.compute(op, DType::float32, left, b.load(1, DType::float32, {1})), 2, {1});
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  return read<float>(b.memory, 2, x.size());
}

/// The distance in units of the last place of the wanted number.
double ulps(float got, double wanted) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<float>(wanted);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  return std::abs(static_cast<double>(got) - wanted) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

std::vector<float> numbers() {
  std::vector<float> x{0.0F, -0.0F, 1.0F, -1.0F, INFINITY, -INFINITY, NAN, 88.0F, -104.0F, 3e38F, -3e38F, 1e-30F};
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.00251F);
  for (int i = -120; i <= 120; ++i) {
    x.push_back(std::ldexp(1.37F, i));
    x.push_back(-std::ldexp(1.11F, i));
  }
  return x;
}

struct Case {
  Op op;
  double (*truth)(double);
  double most;
};

TEST(Math, FunctionsThatMetalLacks) {
  const Case cases[] = {{Op::erf, [](double x) { return std::erf(x); }, 2},
                        {Op::expm1, [](double x) { return std::expm1(x); }, 3},
                        {Op::log1p, [](double x) { return std::log1p(x); }, 3},
                        {Op::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3}};
  const std::vector<float> x = numbers();
  for (const Case& test : cases) {
    const std::vector<float> y = run_unary(test.op, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::abs(test.truth(x[i])) < 1e-36) continue;  // subnormal on the way
      ASSERT_LE(ulps(y[i], test.truth(x[i])), test.most) << ops::row(test.op).name << " of " << x[i] << " is " << y[i];
    }
  }
}

TEST(Math, NormalDistributionIsWithinATenMillionth) {
  const std::vector<float> x = numbers();
  for (const NormalFunction& function : normal_functions) expect_normal(function, x, run_unary(function.op, x));
}

TEST(Math, RemaindersAreExact) {
  std::vector<float> x;
  std::vector<float> y;
  for (const float a : {0.0F, 1.0F, -1.0F, 5.5F, -7.25F, 1e6F, -3e20F, 3e38F, 0.1F, -123456.789F, INFINITY, NAN}) {
    for (const float b : {1.0F, -1.0F, 0.3F, 0.1F, -2.5F, 1e-3F, 7e10F, 0.0F, INFINITY, NAN, 3e-20F}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto any = [&] {
      return std::ldexp(static_cast<float>(random() % 16777216U) - 8388608.0F, int(random() % 60) - 40);
    };
    x.push_back(any());
    y.push_back(any());
  }
  const std::vector<float> z = run_binary(Op::fmod, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float wanted = std::fmod(x[i], y[i]);
    ASSERT_TRUE(z[i] == wanted || (std::isnan(z[i]) && std::isnan(wanted)))
        << x[i] << " by " << y[i] << ": " << z[i] << " instead of " << wanted;
  }
}

template <class T>
std::vector<T> draw(Op op, DType dtype, std::int64_t count, std::uint64_t seed, std::uint64_t offset) {
  MachineDriver driver;
  Builder b(Group::Kind::elementwise, {count}, 1);
  b.memory.add(static_cast<std::size_t>(count) * sizeof(T));
  b.arguments = {offset};
  const auto at =
      b.push({.kind = Kind::index, .dtype = DType::int64, .access = b.access({-1, DType::int64, 0, -1, {1}})});
  const auto value =
      b.push({.kind = Kind::random, .op = op, .dtype = dtype, .inputs = {at, -1, -1}, .argument = 0, .seed = seed});
  b.store(value, 0, {1});
  run_on(driver, *driver.target().compile(b.group), b.memory, b.arguments);
  return read<T>(b.memory, 0, static_cast<std::size_t>(count));
}

TEST(Random, BitsAndUniformNumbersAreTheHosts) {
  constexpr std::uint64_t seed = 0xDEADBEEFCAFE1234ULL;
  constexpr std::uint64_t offset = 0x1FFFFFFFFULL;
  const auto uniform = draw<float>(Op::uniform, DType::float32, 5003, seed, offset);
  const auto bits = draw<std::int64_t>(Op::random_bits, DType::int64, 5003, seed, offset);
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    ASSERT_EQ(uniform[i], base::uniform_at(seed, offset, i));
    ASSERT_EQ(bits[i], base::random_bits_at(seed, offset, i));
  }
}

TEST(Random, NormalNumbersAreWithinTwoUlps) {
  const auto normal = draw<float>(Op::normal, DType::float32, 200000, 42, 7);
  double worst = 0;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const double wanted = base::normal_at(42, 7, i);
    if (wanted == 0) continue;
    worst = std::max(worst, ulps(normal[i], wanted));
    ASSERT_LE(worst, 2) << i << ": " << normal[i] << " instead of " << wanted;
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace russet::test
