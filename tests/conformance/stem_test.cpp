// Convolutions of images of few channels in 16 bits and the gradients for their weights, as the first one of a network
// is: GPUs with tensor cores have kernels of their own for neighbouring channels.
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

class Stem : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

struct Case {
  Shape x, weight;
  Conv2dOptions options;
};

// Several tiles of an image and threadgroups of several tiles; lines that end within what a simdgroup takes; windows at
// every border, few taps and many; features for 32 columns and for 64; lines so long that a tile has one of the result,
// or no room for a fourth channel.
const Case cases[] = {
    {{2, 3, 40, 37}, {64, 3, 3, 3}, {.stride = 1, .padding = 1}},
    {{1, 3, 66, 50}, {64, 3, 7, 7}, {.stride = 2, .padding = 3}},
    {{2, 1, 20, 33}, {48, 1, 5, 5}, {.stride = 1, .padding = 2}},
    {{1, 4, 30, 21}, {40, 4, 3, 3}, {.stride = 3, .padding = 0}},
    {{4, 3, 172, 172}, {32, 3, 3, 3}, {.stride = 2, .padding = 1}},
    {{1, 2, 9, 300}, {56, 2, 2, 2}, {.stride = 1, .padding = 0}},
    {{1, 3, 9, 256}, {64, 3, 7, 7}, {.stride = 2, .padding = 3}},
    {{1, 3, 5, 1040}, {64, 3, 3, 3}, {.stride = 1, .padding = 1}},
    {{0, 3, 20, 20}, {64, 3, 3, 3}, {.stride = 1, .padding = 1}},
};

std::string name_of_case(const Case& one, DType type) {
  return fmt::format("{} by {}, {}", to_string(one.x), to_string(one.weight), name_of(type));
}

double bound_of(DType type) { return type == DType::float16 ? 2e-3 : 1.6e-2; }

TEST_P(Stem, ConvolutionsAndGradients) {
  for (const Case& one : cases) {
    for (const DType type : {DType::bfloat16, DType::float16}) {
      const auto run = [&](Device on) {
        restart();
        const Tensor x = numbers(one.x, on, type);
        const Tensor w = numbers(one.weight, on, type).requires_grad_();
        const Tensor y = conv2d(x, w, {}, one.options);
        const Tensor slope = numbers(y.sizes(), on, type);
        flush();
        y.backward(slope);
        return Results{y, w.grad()};
      };
      EXPECT_EQ(difference(run(device), run(reference), bound_of(type)), "") << name_of_case(one, type);
    }
  }
}

// What becomes of a result in the kernel: of four columns at once, or of one by one where a bias begins at an odd
// place.
TEST_P(Stem, WithWhatComesAfter) {
  const NoGrad no_grad;
  for (const Case& one : cases) {
    const std::int64_t features = one.weight[0];
    const DType type = DType::bfloat16;
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers(one.x, on, type);
      const Tensor w = numbers(one.weight, on, type);
      const Tensor even_bias = numbers({features}, on, type);
      const Tensor odd_bias = numbers({features + 1}, on, type).slice(0, {1, features + 1});
      flush();
      Results results;
      for (const Tensor& bias : {even_bias, odd_bias}) {
        results.push_back(relu(conv2d(x, w, bias, one.options)));
        flush();
      }
      return results;
    };
    EXPECT_EQ(difference(run(device), run(reference), bound_of(type)), "") << name_of_case(one, type);
  }
}

// Infinities and NaN of an image come to the windows that they lie in, and to no other.
TEST_P(Stem, OfInfinities) {
  if (GetParam() == "cpu") GTEST_SKIP() << "oneDNN multiplies the next pixel by the zero that fills a pair of channels";
  const auto run = [&](Device on) {
    restart();
    const Tensor spread =
        where(numbers({2, 3, 40, 37}, on) > 3.2, full({}, INFINITY, {.device = on}), numbers({2, 3, 40, 37}, on));
    const Tensor w = numbers({64, 3, 3, 3}, on, DType::bfloat16).requires_grad_();
    const Tensor y = conv2d(spread.to(DType::bfloat16), w, {}, {.stride = 1, .padding = 1});
    const Tensor slope = numbers(y.sizes(), on, DType::bfloat16);
    flush();
    y.backward(slope);
    return Results{isfinite(y).to(DType::float32), isfinite(w.grad()).to(DType::float32)};
  };
  EXPECT_EQ(difference(run(device), run(reference), 0), "");
}

// The sum of a weight's gradient has parts, which depend on the shape alone.
TEST_P(Stem, GradientsOfWeightsRepeatBitForBit) {
  const auto run = [&] {
    restart();
    const Tensor x = numbers({8, 3, 64, 64}, device, DType::bfloat16);
    const Tensor w = numbers({64, 3, 3, 3}, device, DType::bfloat16).requires_grad_();
    sum(square(conv2d(x, w, {}, {.stride = 1, .padding = 1}))).backward();
    return w.grad().to(reference).to_vector<float>();
  };
  const std::vector<float> first = run();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(), first);
}

INSTANTIATE_TEST_SUITE_P(Devices, Stem, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
