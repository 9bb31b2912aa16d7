// Convolutions of single pixels to many channels from few, in 16 bits, with batch norm behind them, and their
// gradients: GPUs with tensor cores have a kernel of their own that also adds up what the batch norm needs.
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

class Pointwise : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

struct Case {
  std::int64_t images, side, few, many;
};

// As many elements as the kernel is chosen for: lines that it takes at once end within an image, channels within what
// eight lanes have, and a depth within a slice of sixteen.
const Case cases[] = {{39, 64, 16, 64}, {30, 57, 24, 104}};

TEST_P(Pointwise, WithBatchNormAndGradients) {
  for (const Case& one : cases) {
    const DType type = DType::bfloat16;
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers({one.images, one.few, one.side, one.side}, on, type).requires_grad_();
      const Tensor residual = numbers({one.images, one.many, one.side, one.side}, on, type);
      const Tensor wide = (numbers({one.many, one.few, 1, 1}, on, type) * 0.3).detach().requires_grad_();
      const Tensor narrow = (numbers({one.few, one.many, 1, 1}, on, type) * 0.1).detach().requires_grad_();
      const Tensor weight = numbers({one.many}, on).requires_grad_();
      const Tensor bias = numbers({one.many}, on).requires_grad_();
      const Tensor slope = numbers({one.images, one.few, one.side, one.side}, on, type);
      flush();
      const Tensor y = batch_norm(conv2d(x, wide), {}, {}, weight, bias, {.training = true});
      // Not relu: of numbers near zero, the last bit would decide.
      const Tensor z = where(residual > 0, y + residual, 0);
      const Tensor result = conv2d(z, narrow);
      result.backward(slope);
      return Results{result, x.grad(), wide.grad(), narrow.grad(), weight.grad(), bias.grad()};
    };
    EXPECT_EQ(difference(run(device), run(reference), 2e-2), "") << fmt::format(
        "{} images of {} x {}, from {} channels to {}", one.images, one.side, one.side, one.few, one.many);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Pointwise, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
