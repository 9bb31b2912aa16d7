// A linear layer with GELU and its gradients, large enough for the kernel that runs such functions while it multiplies
// (device cuda); smaller products have no use for it, and other devices no such kernel.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

class Warpgroups : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

/// A depth that ends within a slice, rows within a tile.
TEST_P(Warpgroups, LinearWithGeluAndGradients) {
  if (device.type != DeviceType::cuda) GTEST_SKIP() << "the device " << GetParam() << " has no such kernel";
  constexpr std::int64_t rows = 8440;
  constexpr std::int64_t inner = 136;
  constexpr std::int64_t outer = 1280;
  int found = 0;
  const auto run = [&](Device on) {
    restart();
    const DType type = DType::bfloat16;
    const Tensor x = numbers({rows, inner}, on, type).requires_grad_();
    const Tensor first = (numbers({outer, inner}, on, type) * 0.1).detach().requires_grad_();
    const Tensor bias = numbers({outer}, on, type).requires_grad_();
    const Tensor second = (numbers({inner, outer}, on, type) * 0.03).detach().requires_grad_();
    const Tensor slope = numbers({rows, inner}, on, type);
    flush();
    const Tensor y = linear(gelu(linear(x, first, bias)), second);
    y.backward(slope);
    return Results{y, x.grad(), first.grad(), bias.grad(), second.grad()};
  };
  observe_plans(device, [&](const PlanSummary& plan) {
    for (const StepInfo& step : plan.steps) found += step.kernel == "warpgroup product";
  });
  const Results results = run(device);
  flush();
  observe_plans(device, nullptr);
  EXPECT_EQ(found, 2);
  EXPECT_EQ(difference(results, run(Device(DeviceType::cpu)), 2e-2), "");
}

/// Random numbers come from places that the launch is told anew each time, for which the kernel has no room.
TEST_P(Warpgroups, LinearBeforeDropout) {
  if (device.type != DeviceType::cuda) GTEST_SKIP() << "the device " << GetParam() << " has no such kernel";
  const auto run = [&](Device on) {
    restart();
    manual_seed(3);
    const Tensor x = numbers({8440, 136}, on, DType::bfloat16);
    const Tensor weight = (numbers({1280, 136}, on, DType::bfloat16) * 0.1).detach();
    flush();
    return Results{dropout(linear(x, weight), 0.5)};
  };
  EXPECT_EQ(difference(run(device), run(Device(DeviceType::cpu)), 2e-2), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Warpgroups, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
