// A layer that is used again and again in one graph, as recurrent networks do: the gradients of all uses add up,
// however many there are.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/runtime.h>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

constexpr std::int64_t width = 8;
constexpr std::int64_t batch = 4;

class SharedWeights : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const Device device{std::get<0>(GetParam())};
  const int uses = std::get<1>(GetParam());
  const nn::NewModules place{device};

  /// Small integers, others for each use.
  Tensor input(int use) const {
    return remainder(arange(batch * width, {.device = device}) * (use % 5 + 1) + use, 7)
        .reshape({batch, width})
        .to(DType::float32);
  }
};

TEST_P(SharedWeights, AddUpTheirGradients) {
  nn::Linear layer(width, width);
  Tensor sum = zeros({batch, width}, {.device = device});
  std::vector<double> expected(width, 0);  // of a row of the weight: the gradient of the output is 1 everywhere
  for (int use = 0; use < uses; ++use) {
    const Tensor x = input(use);
    const std::vector<float> numbers = x.to_vector<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i) expected[i % width] += static_cast<double>(numbers[i]);
    sum = sum + layer(x);
  }
  russet::sum(sum).backward();
  const std::vector<float> weight = layer.weight.grad().to_vector<float>();
  const std::vector<float> bias = layer.bias.grad().to_vector<float>();
  for (std::size_t i = 0; i < weight.size(); ++i) EXPECT_EQ(static_cast<double>(weight[i]), expected[i % width]) << i;
  for (const float number : bias) EXPECT_EQ(number, static_cast<float>(batch * uses));
}

TEST_P(SharedWeights, RunAsARecurrentNetwork) {
  nn::Linear layer(width, width);
  {
    const NoGrad no_grad;
    layer.weight.copy_(eye(width, {}, {.device = device}));
    layer.bias.zero_();
  }
  const Tensor x = input(1).requires_grad_();
  Tensor state = x;
  for (int use = 0; use < uses; ++use) state = layer(state);
  russet::sum(state).backward();
  EXPECT_EQ(state.to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(batch * width, 1.0F));
  const std::vector<float> once = russet::sum(x, 0).to_vector<float>();
  const std::vector<float> weight = layer.weight.grad().to_vector<float>();
  for (std::size_t i = 0; i < weight.size(); ++i) {
    EXPECT_EQ(weight[i], once[i % width] * static_cast<float>(uses)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedWeights,
                         testing::Combine(testing::ValuesIn(tested_devices()), testing::Values(2, 31, 34, 100)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace russet::conformance
