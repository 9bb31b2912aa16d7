// What follows convolutions: a bias and relu, batch norm in evaluation, a residual. Devices do it as they store the
// result, and may scale the weight instead of the result.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <cmath>
#include <limits>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

class ConvolutionEpilogues : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  struct Layer {
    Tensor weight, mean, variance, gamma, beta;
  };

  Layer layer(const Shape& weight, Device on, DType type) {
    const Shape channels{weight[0]};
    return {numbers(weight, on, type) * 0.2, numbers(channels, on), square(numbers(channels, on)) + 0.5,
            numbers(channels, on), numbers(channels, on)};
  }

  static Tensor normalised(const Tensor& x, const Layer& layer, const Conv2dOptions& options) {
    return batch_norm(conv2d(x, layer.weight, {}, options), layer.mean, layer.variance, layer.gamma, layer.beta,
                      {.training = false});
  }

  /// Expects the results of `program(device, type)` to be the reference's.
  template <class Program>
  void expect_as_reference(const Program& program) {
    for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
      const auto run = [&](Device on) {
        restart();
        return program(on, type);
      };
      const double bound = type == DType::float32 ? 1e-5 : type == DType::float16 ? 5e-3 : 4e-2;
      EXPECT_EQ(difference(run(device), run(reference), bound), "") << name_of(type);
    }
  }

  const Device device{GetParam()};
};

// With more channels than kernels of our own take for few.

// As resnets have it, in evaluation: a block with a convolution beside it, and one without.
TEST_P(ConvolutionEpilogues, AreBatchNormInEvaluation) {
  expect_as_reference([&](Device on, DType type) {
    const NoGrad no_grad;
    const Tensor x = numbers({4, 16, 12, 12}, on, type);
    const Layer narrow = layer({16, 16, 1, 1}, on, type);
    const Layer wide = layer({48, 16, 3, 3}, on, type);
    const Layer beside = layer({48, 16, 1, 1}, on, type);
    const Layer last = layer({48, 48, 3, 3}, on, type);
    flush();
    const Tensor h = relu(normalised(x, narrow, {}));
    const Tensor y = relu(normalised(h, wide, {.padding = 1}) + normalised(x, beside, {}));
    const Tensor z = relu(normalised(y, last, {.padding = 1}) + y);
    return Results{h, y, z, normalised(z, last, {.stride = 2, .padding = 1})};
  });
}

TEST_P(ConvolutionEpilogues, AreABiasAndReluInTraining) {
  expect_as_reference([&](Device on, DType type) {
    const Tensor x = numbers({4, 16, 12, 12}, on, type).requires_grad_();
    const Tensor v = (numbers({48, 16, 3, 3}, on, type) * 0.2).detach().requires_grad_();
    const Tensor w = (numbers({40, 48, 3, 3}, on, type) * 0.1).detach().requires_grad_();
    const Tensor a = numbers({48}, on, type).requires_grad_();
    const Tensor b = numbers({40}, on, type).requires_grad_();
    flush();
    Tensor y;
    in_one_plan([&] {
      y = relu(conv2d(avg_pool2d(relu(conv2d(x, v, a, {.padding = 1})), 2), w, b, {.padding = 1}));
      sum(y * y).backward();
    });
    return Results{y, x.grad(), v.grad(), w.grad(), a.grad(), b.grad()};
  });
}

TEST_P(ConvolutionEpilogues, HandOnNaN) {
  for (const DType type : {DType::float32, DType::bfloat16}) {
    restart();
    std::vector<float> values(4 * 16 * 12 * 12, 1.0F);
    values[5] = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = Tensor::from(values, {4, 16, 12, 12}).to(type).to(device);
    const Tensor y =
        relu(conv2d(x, numbers({48, 16, 3, 3}, device, type), numbers({48}, device, type), {.padding = 1}));
    const auto found = y.to(DType::float32).to_vector<float>();
    EXPECT_TRUE(std::isnan(found[5])) << name_of(type);
    EXPECT_FALSE(std::isnan(found[12 * 12 - 1])) << name_of(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvolutionEpilogues, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace russet
