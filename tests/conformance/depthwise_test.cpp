// Depthwise convolutions and their gradients, of every layout in which channels may lie: GPUs have kernels of their own
// for neighbouring channels, two of them a thread and eight pixels of a line at a time.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

class Depthwise : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

struct Case {
  Shape x;
  std::int64_t kernel;
  Conv2dOptions options;
};

Conv2dOptions depthwise(std::int64_t channels, std::int64_t stride, std::int64_t padding, std::int64_t dilation = 1) {
  return {.stride = stride, .padding = padding, .dilation = dilation, .groups = channels};
}

// Lines shorter and longer than a strip, whole strips of eight and of seven, fewer and more channels than a threadgroup
// takes, windows at every border.
const Case cases[] = {
    {{2, 6, 9, 11}, 3, depthwise(6, 1, 1)},     {{1, 70, 5, 8}, 3, depthwise(70, 1, 1)},
    {{3, 34, 7, 21}, 5, depthwise(34, 1, 2)},   {{2, 66, 4, 24}, 7, depthwise(66, 1, 3)},
    {{2, 6, 12, 17}, 3, depthwise(6, 2, 1)},    {{2, 10, 11, 32}, 5, depthwise(10, 2, 2)},
    {{1, 4, 14, 20}, 7, depthwise(4, 2, 3)},    {{2, 8, 9, 10}, 3, depthwise(8, 1, 0)},
    {{2, 4, 10, 13}, 3, depthwise(4, 1, 2, 2)}, {{2, 4, 9, 9}, 3, depthwise(4, 1, 4)},
    {{2, 6, 8, 9}, 1, depthwise(6, 1, 0)},      {{2, 6, 8, 9}, 2, depthwise(6, 2, 0)},
    {{2, 5, 8, 9}, 3, depthwise(5, 1, 1)},      {{9, 8, 33, 5}, 3, depthwise(8, 1, 1)},
    {{8, 8, 64, 17}, 3, depthwise(8, 1, 1)},  // enough lines for a small GPU not to cut them
    {{0, 6, 8, 9}, 3, depthwise(6, 1, 1)},      {{1, 6, 10, 9}, 9, depthwise(6, 1, 4)},
};

std::string name_of_case(const Case& one) { return fmt::format("{}, {} taps", to_string(one.x), one.kernel); }

// All in float32, each fourth in float16 and in bfloat16: kernels differ in nothing but the type, and each is compiled.
std::vector<DType> types_of_case(std::size_t place) {
  if (place % 4 == 0) return {DType::float32, DType::bfloat16};
  if (place % 4 == 3) return {DType::float32, DType::float16};
  return {DType::float32};
}

TEST_P(Depthwise, ConvolutionsAndGradients) {
  for (std::size_t place = 0; place < std::size(cases); ++place) {
    const Case& one = cases[place];
    for (const DType type : types_of_case(place)) {
      const auto run = [&](Device on) {
        restart();
        const Tensor x = numbers(one.x, on, type).requires_grad_();
        const Tensor w = numbers({one.x[1], 1, one.kernel, one.kernel}, on, type).requires_grad_();
        const Tensor y = conv2d(x, w, {}, one.options);
        const Tensor slope = numbers(y.sizes(), on, type);
        flush();
        y.backward(slope);
        return Results{y, x.grad(), w.grad()};
      };
      const double bound = type == DType::float32 ? 1e-5 : type == DType::float16 ? 2e-3 : 1.6e-2;
      EXPECT_EQ(difference(run(device), run(reference), bound), "") << name_of_case(one) << ", " << name_of(type);
    }
  }
}

TEST_P(Depthwise, HasItsOwnKernelsOnAGpu) {
  if (GetParam() == "cpu") GTEST_SKIP() << "the CPU's kernels are other ones";
  for (const bool to_weight : {false, true}) {
    const Tensor x = numbers({2, 6, 9, 11}, device).requires_grad_(!to_weight);
    const Tensor w = numbers({6, 1, 3, 3}, device).requires_grad_(to_weight);
    const Tensor slope = numbers(x.sizes(), device);
    flush();
    std::vector<std::string> kernels;
    observe_plans(device, [&](const PlanSummary& plan) {
      for (const StepInfo& step : plan.steps) {
        if (step.detail.find("convolution") != std::string::npos) kernels.push_back(step.kernel);
      }
    });
    const Tensor y = conv2d(x, w, {}, depthwise(6, 1, 1));
    flush();
    y.backward(slope);
    flush();
    observe_plans(device, nullptr);
    EXPECT_GE(kernels.size(), 2U);
    for (const std::string& kernel : kernels) EXPECT_EQ(kernel.find("depthwise"), 0U) << kernel;
  }
}

// What comes before and after is a part of the kernel where the device has it so: the cast of a weight, a bias and an
// activation, a normalisation, the update of the weight.
TEST_P(Depthwise, WithWhatComesBeforeAndAfter) {
  for (const std::size_t place : {0, 1, 3, 8, 11, 12}) {  // strides, dilations, even and odd windows and channels
    const Case& one = cases[place];
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers(one.x, on).requires_grad_();
      const Tensor w = numbers({one.x[1], 1, one.kernel, one.kernel}, on).requires_grad_();
      const Tensor bias = numbers({one.x[1]}, on).requires_grad_();
      const Tensor gamma = numbers({one.x[1]}, on).requires_grad_();
      flush();
      const Tensor h = batch_norm(gelu(x), {}, {}, gamma, {}, {.training = true});
      const Tensor y = gelu(conv2d(h, w * 0.5, bias, one.options));
      mean(y * y).backward();
      return Results{y, x.grad(), w.grad(), bias.grad(), gamma.grad()};
    };
    EXPECT_EQ(difference(run(device), run(reference), 1e-4), "") << name_of_case(one);
  }
}

// What becomes of a result in the kernel: of pairs of channels, or of one by one where a bias begins at an odd place.
TEST_P(Depthwise, WithWhatComesAfter) {
  const NoGrad no_grad;
  for (const std::size_t place : {0, 3}) {
    const Case& one = cases[place];
    const std::int64_t channels = one.x[1];
    for (const DType type : {DType::float32, DType::bfloat16}) {
      const auto run = [&](Device on) {
        restart();
        const Tensor x = numbers(one.x, on, type);
        const Tensor w = numbers({channels, 1, one.kernel, one.kernel}, on, type);
        const Tensor even_bias = numbers({channels}, on, type);
        const Tensor odd_bias = numbers({channels + 1}, on, type).slice(0, {1, channels + 1});
        const Shape sizes = conv2d(x, w, {}, one.options).sizes();
        const Tensor neighbours = numbers({sizes[0], sizes[2], sizes[3], channels}, on, type).permute({0, 3, 1, 2});
        flush();
        Results results;
        for (const Tensor& bias : {even_bias, odd_bias}) {
          results.push_back(neighbours + relu(conv2d(x, w, bias, one.options)));
          flush();
          results.push_back(neighbours + dropout(relu(conv2d(x, w, bias, one.options)), 0.5, true));
          flush();
        }
        return results;
      };
      EXPECT_EQ(difference(run(device), run(reference), type == DType::float32 ? 1e-5 : 2e-2), "")
          << name_of_case(one) << ", " << name_of(type);
    }
  }
}

// Slices of channels begin at odd places, so that no two channels may be read at once.
TEST_P(Depthwise, OfSlicesOfChannels) {
  const auto run = [&](Device on) {
    restart();
    const Tensor all = numbers({2, 9, 10, 15}, on, DType::bfloat16);  // [n, h, w, c]
    const Tensor w = numbers({6, 1, 3, 3}, on, DType::bfloat16);
    flush();
    Results results;
    for (const std::int64_t first : {0, 1, 2, 3}) {
      const Tensor x = all.slice(3, {first, first + 6}).permute({0, 3, 1, 2});
      results.push_back(conv2d(x, w, {}, depthwise(6, 1, 1)));
      results.push_back(conv2d(x.flip({3}), w, {}, depthwise(6, 2, 1)));
    }
    return results;
  };
  EXPECT_EQ(difference(run(device), run(reference), 1.6e-2), "");
}

// The sum of a weight's gradient has parts, which depend on the shape alone.
TEST_P(Depthwise, GradientsOfWeightsRepeatBitForBit) {
  const auto run = [&] {
    restart();
    const Tensor x = numbers({8, 36, 20, 20}, device);
    const Tensor w = numbers({36, 1, 5, 5}, device).requires_grad_();
    sum(square(conv2d(x, w, {}, depthwise(36, 1, 2)))).backward();
    return w.grad().to(reference).to_vector<float>();
  };
  const std::vector<float> first = run();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(), first);
}

INSTANTIATE_TEST_SUITE_P(Devices, Depthwise, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
