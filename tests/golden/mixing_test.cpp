// MixUp and CutMix against torchvision (scripts/golden/mixing.py), and how shares are drawn.
#include "data/mixing.h"

#include <gtest/gtest.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "calls/golden.h"

namespace golden {
namespace {

namespace data = russet::data;
using russet::DType;
using russet::Shape;

std::vector<float> floats(const russet::Tensor& tensor) { return tensor.to_vector<float>(); }

TEST(Mixing, BatchesAreTorchvisions) {
  const Json record = read_json("mixing.json.gz");
  const std::uint64_t seed = record.at("seed");
  const std::int64_t classes = record.at("classes");
  for (const Json& expected : record.at("cases")) {
    const Shape shape = shape_of(expected.at("shape"));
    const std::uint64_t offset = expected.at("offset");
    std::vector<float> inputs = floats(real(seed, 2 * offset, shape, -1, 1, DType::float32));
    const std::vector<std::int64_t> labels =
        integer(seed, 2 * offset + 1, {shape[0]}, 0, classes, DType::int64).to_vector<std::int64_t>();
    data::Mixture mixture{.own = expected.at("share")};
    if (expected.at("name") == "cutmix") {
      const Json& place = expected.at("place");
      mixture = data::cut_mixture(expected.at("share"), place.at(1), place.at(0), shape[2], shape[3]);
    }
    data::mix_inputs(inputs, {shape[1], shape[2], shape[3]}, mixture);
    std::vector<float> shares(labels.size() * static_cast<std::size_t>(classes));
    data::mix_targets(labels, classes, mixture, shares);
    const std::string name = expected.at("name").get<std::string>() + expected.at("share").dump();
    EXPECT_EQ(difference({inputs.begin(), inputs.end()}, numbers(expected.at("inputs")), 1e-6), "") << name;
    EXPECT_EQ(difference({shares.begin(), shares.end()}, numbers(expected.at("targets")), 1e-6), "") << name;
  }
}

TEST(Mixing, LabelsOutsideOfTheClassesAreRefused) {
  std::vector<float> shares(6);
  for (const std::int64_t label : {3, -1}) {
    EXPECT_THROW(data::mix_targets(std::vector<std::int64_t>{0, label}, 3, {}, shares), russet::ValueError) << label;
  }
  data::mix_targets(std::vector<std::int64_t>{0, 2}, 3, {}, shares);
  EXPECT_EQ(shares, (std::vector<float>{1, 0, 0, 0, 0, 1}));
}

/// Beta(a, a) has the mean 1/2 and the variance 1 / (8a + 4).
TEST(Mixing, SharesAreOfTheBetaDistribution) {
  constexpr int count = 40'000;
  for (const double alpha : {0.02, 0.2, 1.0, 3.0, 50.0}) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      data::Random random(3, data::Random::Purpose::mixing, 0, static_cast<std::uint64_t>(i));
      const double share = data::draw_beta(alpha, random);
      ASSERT_TRUE(share >= 0 && share <= 1) << share;
      sum += share - 0.5;
      squares += (share - 0.5) * (share - 0.5);
    }
    const double variance = 1 / (8 * alpha + 4);
    EXPECT_NEAR(sum / count, 0, 5 * std::sqrt(variance / count)) << alpha;
    // The fourth central moment is at most 1/4 of the variance, as |share - 1/2| <= 1/2.
    EXPECT_NEAR(squares / count, variance, 5 * std::sqrt(variance / 4 / count)) << alpha;
  }
}

/// Beta(1, 1) is uniform, Beta(1/2, 1/2) the arcsine distribution.
TEST(Mixing, SharesHaveTheDistributionsKnownShapes) {
  constexpr int count = 20'000;
  for (const double alpha : {0.5, 1.0}) {
    std::vector<double> shares;
    for (int i = 0; i < count; ++i) {
      data::Random random(4, data::Random::Purpose::mixing, 1, static_cast<std::uint64_t>(i));
      shares.push_back(data::draw_beta(alpha, random));
    }
    std::sort(shares.begin(), shares.end());
    double distance = 0;  // of Kolmogorov and Smirnov
    for (int i = 0; i < count; ++i) {
      const double share = shares[static_cast<std::size_t>(i)];
      const double expected = alpha == 1 ? share : 2 / std::numbers::pi * std::asin(std::sqrt(share));
      distance = std::max(distance, std::abs(expected - (i + 0.5) / count));
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(count)) << alpha;  // holds in all but 0.1 % of draws
  }
}

}  // namespace
}  // namespace golden
