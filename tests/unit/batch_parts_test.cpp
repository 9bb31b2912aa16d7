// Batches in parts: gradients and random numbers are those of the whole.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <cmath>

namespace russet {
namespace {

TEST(RandomPart, DrawsWhatTheWholeDraws) {
  for (const char* name : {"cpu", "reference"}) {
    const Device device(name);
    const auto draw = [&](std::int64_t samples) {
      const Tensor normal = randn({samples, 5}, {DType::float32, device, false});
      const Tensor uniform = rand({samples * 2, 3}, {DType::float32, device, false});
      return std::vector<Tensor>{normal, uniform, dropout(uniform + 1, 0.5, true)};
    };
    const Generator::State before = default_generator(device.type).state();
    const std::vector<Tensor> whole = draw(12);
    for (const auto& [first, count] : {std::pair{0, 5}, {5, 7}, {11, 1}}) {
      default_generator(device.type).set_state(before);
      const RandomPart part(first, count);
      const std::vector<Tensor> drawn = draw(count);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::int64_t rows = whole[i].size(0) / 12;
        const Tensor expected = whole[i].narrow(0, first * rows, count * rows);
        EXPECT_EQ(drawn[i].to_vector<float>(), expected.contiguous().to_vector<float>()) << name << ' ' << i;
      }
    }
  }
}

TEST(RandomPart, WhatHasNoSamplesIsTheSameForAllParts) {
  const Generator::State before = default_generator(DeviceType::cpu).state();
  const std::vector<float> whole = randn({7, 2}).to_vector<float>();
  default_generator(DeviceType::cpu).set_state(before);
  const RandomPart part(4, 4);
  EXPECT_EQ(randn({7, 2}).to_vector<float>(), whole);
}

TEST(RandomPart, RefusesNoSamples) {
  EXPECT_THROW(RandomPart(0, 0), ValueError);
  EXPECT_THROW(RandomPart(-1, 2), ValueError);
}

/// Gradients of a batch of 20 with dropout, in parts of so many samples.
std::vector<std::vector<float>> gradients(const models::Model& model, const data::Batch& batch, std::int64_t samples) {
  manual_seed(5);
  amp::GradScaler scaler = train::scaler_for(DType::float32);
  const train::BatchParts parts(batch, samples);
  models::Model network = model;
  for (std::int64_t part = 0; part < parts.count(); ++part) {
    parts.with(part, [&](const data::Batch& own, double share) {
      const Tensor loss = train::loss_of(train::Objective::cross_entropy, train::forward(network, own), own.target);
      train::add_gradients(loss, share, scaler);
    });
  }
  std::vector<std::vector<float>> found;
  for (const Tensor& parameter : network.parameters()) {
    found.push_back(parameter.grad().to_vector<float>());
    parameter.set_grad({});
  }
  return found;
}

void expect_close(const std::vector<std::vector<float>>& found, const std::vector<std::vector<float>>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double error = 0;
    double norm = 0;
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      error += std::pow(found[i][j] - expected[i][j], 2);
      norm += std::pow(expected[i][j], 2);
    }
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm) + 1e-9) << "gradient " << i;
  }
}

TEST(BatchParts, GradientsAddUpToTheBatchs) {
  models::ModelOptions options;
  options.num_classes = 10;
  options.dropout = 0.3;
  const models::Model model = models::get_model("lenet5", options);
  data::Batch batch;
  batch.input = randn({20, 1, 28, 28});
  batch.target = arange(20) % 10;
  flush();
  const auto whole = gradients(model, batch, 20);
  for (const std::int64_t samples : {10, 8, 3}) expect_close(gradients(model, batch, samples), whole);
}

TEST(BatchParts, AreAsEqualAsCanBe) {
  data::Batch batch;
  batch.input = arange(20);
  batch.target = arange(20);
  batch.fields.emplace("mask", arange(20));
  const train::BatchParts parts(batch, 8);
  ASSERT_EQ(parts.count(), 3);
  std::vector<std::int64_t> sizes;
  double shares = 0;
  for (std::int64_t part = 0; part < 3; ++part) {
    parts.with(part, [&](const data::Batch& own, double share) {
      sizes.push_back(own.input.size(0));
      EXPECT_EQ(own.target.to_vector<std::int64_t>(), own.input.to_vector<std::int64_t>());
      EXPECT_EQ(own.fields.at("mask").to_vector<std::int64_t>(), own.input.to_vector<std::int64_t>());
      shares += share;
    });
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{6, 7, 7}));
  EXPECT_DOUBLE_EQ(shares, 1);
}

}  // namespace
}  // namespace russet
