// Random functions: the numbers are those of Philox at the generator's seed and offset; distributions and ranges.
#include <gtest/gtest.h>
#include <russet/functional.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"

namespace russet {
namespace {

constexpr Device device{DeviceType::reference};

TEST(Generator, StateAndOffsets) {
  Generator generator(7);
  EXPECT_EQ(generator.next(), (Generator::State{7, 0}));
  EXPECT_EQ(generator.next(), (Generator::State{7, 1}));
  const Generator::State kept = generator.state();
  const Tensor first = rand({5}, {.device = device}, &generator);
  generator.set_state(kept);
  EXPECT_TRUE(equal(first, rand({5}, {.device = device}, &generator)));
  EXPECT_FALSE(equal(first, rand({5}, {.device = device}, &generator)));
  generator.manual_seed(7);
  EXPECT_EQ(generator.state(), (Generator::State{7, 0}));
}

TEST(Random, NumbersArePhilox) {
  Generator generator(11);
  generator.set_state({11, 3});
  const auto u = rand({2, 5}, {.device = device}, &generator).to_vector<float>();
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_EQ(u[i], base::uniform_at(11, 3, i));
  const auto integers = randint(-2, 5, {9}, {.device = device}, &generator).to_vector<std::int64_t>();
  for (std::size_t i = 0; i < integers.size(); ++i) EXPECT_EQ(integers[i], base::random_bits_at(11, 4, i) % 7 - 2);
}

TEST(Random, DefaultGeneratorsAreSeededTogether) {
  manual_seed(5);
  const Tensor first = randn({4}, {.device = device});
  manual_seed(5);
  EXPECT_TRUE(equal(first, randn({4}, {.device = device})));
  EXPECT_EQ(default_generator(DeviceType::cpu).seed(), 5U);
}

double mean_of(const Tensor& x) { return mean(x.to(DType::float64)).item(); }
double variance_of(const Tensor& x) { return var(x.to(DType::float64)).item(); }

TEST(Random, Distributions) {
  manual_seed(1);
  const Shape many{40000};
  const TensorOptions options{.device = device};
  EXPECT_NEAR(mean_of(rand(many, options)), 0.5, 0.01);
  EXPECT_NEAR(variance_of(rand(many, options)), 1.0 / 12, 0.005);
  EXPECT_NEAR(mean_of(randn(many, options)), 0, 0.02);
  EXPECT_NEAR(variance_of(randn(many, options)), 1, 0.03);
  EXPECT_NEAR(mean_of(normal(3, 0.5, many, options)), 3, 0.02);
  EXPECT_NEAR(mean_of(bernoulli(full(many, 0.3, {.device = device}))), 0.3, 0.01);
  EXPECT_NEAR(mean_of(zeros(many, options).exponential_(2)), 0.5, 0.02);
  EXPECT_NEAR(mean_of(zeros(many, options).uniform_(-1, 3)), 1, 0.05);
  EXPECT_NEAR(mean_of(zeros(many, {DType::int64, device}).bernoulli_(0.7)), 0.7, 0.01);
}

TEST(Random, SixteenBitTypesStayBelowOne) {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const auto values = rand({20000}, {dtype, device}).to_vector<float>();
    EXPECT_LT(*std::max_element(values.begin(), values.end()), 1.0F);
    EXPECT_GE(*std::min_element(values.begin(), values.end()), 0.0F);
  }
}

TEST(Random, PermutationsAndDraws) {
  auto order = randperm(100, {.device = device}).to_vector<std::int64_t>();
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);

  const Tensor weights = Tensor::from({0.0F, 1.0F, 3.0F}, {3}, device);
  const auto draws = multinomial(weights, 20000, true).to_vector<std::int64_t>();
  EXPECT_EQ(std::count(draws.begin(), draws.end(), 0), 0);
  EXPECT_NEAR(static_cast<double>(std::count(draws.begin(), draws.end(), 2)) / 20000, 0.75, 0.015);
  auto both = multinomial(weights, 2).to_vector<std::int64_t>();
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, (std::vector<std::int64_t>{1, 2}));
  EXPECT_THROW(multinomial(weights, 4), ValueError);
}

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(Random, DrawsNeedWeights) {
  const auto draw = [](const std::vector<float>& weights, std::int64_t count, bool replacement) {
    return error_of([&] {
      multinomial(Tensor::from(weights, {static_cast<std::int64_t>(weights.size()) / 2, 2}, device), count,
                  replacement);
    });
  };
  const float broken[] = {-1, INFINITY, -INFINITY, NAN};
  for (const bool replacement : {false, true}) {
    for (const float weight : broken) {
      EXPECT_EQ(draw({1, 2, weight, 2}, 1, replacement),
                "multinomial: there are weights that are negative, infinite or NaN");
    }
    EXPECT_EQ(draw({1, 2, 0, 0}, 1, replacement), "multinomial: no weight of a row is above 0");
    EXPECT_EQ(draw({1, 2, 0, 1}, 1, replacement), "");
  }
  EXPECT_EQ(draw({1, 2, 0, 1}, 2, true), "");
  EXPECT_EQ(draw({1, 2, 0, 1}, 2, false),
            "multinomial: 2 draws without replacement from a row with 1 weight(s) above 0");
  EXPECT_EQ(multinomial(zeros({0, 3}, {.device = device}), 2).sizes(), (Shape{0, 2}));
  EXPECT_EQ(multinomial(zeros({3}, {.device = DeviceType::null}), 2).sizes(), Shape{2});
}

TEST(Random, ProbabilitiesLieBetween0And1) {
  for (const float p : {1.5F, -0.1F, NAN, INFINITY}) {
    EXPECT_NE(error_of([&] { bernoulli(Tensor::from({0.5F, p}, {2}, device)); }), "") << p;
    EXPECT_NE(error_of([&] { zeros({2}, {.device = device}).bernoulli_(p); }), "") << p;
  }
  EXPECT_EQ(bernoulli(Tensor::from({0.0F, 1.0F}, {2}, device)).to_vector<float>(), (std::vector<float>{0, 1}));
  EXPECT_EQ(bernoulli(zeros({0}, {.device = device})).numel(), 0);
}

TEST(Random, Refusals) {
  EXPECT_THROW(normal(0, NAN, {2}), ValueError);
  EXPECT_THROW(zeros({2}).uniform_(0, NAN), ValueError);
  EXPECT_THROW(randint(INT64_MIN, INT64_MAX, {2}), ValueError);
  EXPECT_THROW(randint(0, 300, {2}, {.dtype = DType::uint8}), ValueError);
  EXPECT_NO_THROW(randint(0, 256, {2}, {.dtype = DType::uint8}));
  EXPECT_THROW(randperm(300, {.dtype = DType::uint8}), ValueError);
  EXPECT_THROW(randint(3, 3, {2}), ValueError);
  EXPECT_THROW(rand({2}, {DType::int64}), TypeError);
  EXPECT_THROW(normal(0, -1, {2}), ValueError);
  EXPECT_THROW(zeros({2}).bernoulli_(1.5), ValueError);
  EXPECT_THROW(zeros({2}).uniform_(1, 0), ValueError);
}

}  // namespace
}  // namespace russet
