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
  std::vector<float> numbers(int use) const {
    std::vector<float> values;
    for (int i = 0; i < batch * width; ++i) values.push_back(static_cast<float>((i * (use % 5 + 1) + use) % 7));
    return values;
  }
  Tensor tensor(const std::vector<float>& values) const {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size()) / width, width}, device);
  }
};

TEST_P(SharedWeights, AddUpTheirGradients) {
  nn::Linear layer(width, width);
  Tensor sum = zeros({batch, width}, {.device = device});
  std::vector<double> expected(width, 0);  // of a row of the weight: the gradient of the output is 1 everywhere
  for (int use = 0; use < uses; ++use) {
    const std::vector<float> x = numbers(use);
    for (std::size_t i = 0; i < x.size(); ++i) expected[i % width] += static_cast<double>(x[i]);
    sum = sum + layer(tensor(x));
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
    std::vector<float> identity(width * width);
    for (std::size_t i = 0; i < width; ++i) identity[i * width + i] = 1;
    layer.weight.copy_(tensor(identity));
    layer.bias.zero_();
  }
  const Tensor x = tensor(numbers(1)).requires_grad_();
  Tensor state = x;
  for (int use = 0; use < uses; ++use) state = layer(state);
  russet::sum(state).backward();
  EXPECT_EQ(state.to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(batch * width, 1.0F));
  std::vector<float> once(width);
  for (std::size_t i = 0; i < batch * width; ++i) once[i % width] += numbers(1)[i];
  const std::vector<float> weight = layer.weight.grad().to_vector<float>();
  for (std::size_t i = 0; i < weight.size(); ++i) {
    EXPECT_EQ(weight[i], once[i % width] * static_cast<float>(uses)) << i;
  }
}

/// Where kernels are compiled, those of the most uses alone.
std::vector<std::tuple<std::string, int>> devices_and_uses() {
  std::vector<std::tuple<std::string, int>> all;
  for (const std::string& device : tested_devices()) {
    for (const int uses : {2, 31, 34, 100}) {
      if (uses == 100 || !compiles_kernels(device)) all.emplace_back(device, uses);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedWeights, testing::ValuesIn(devices_and_uses()), [](const auto& info) {
  return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
});

}  // namespace
}  // namespace russet::conformance
