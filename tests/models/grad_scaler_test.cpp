// Training in float16 with scaled gradients on the tested devices: nothing is read or compiled, a step that overflows
// is skipped, and training goes on from a saved state.
#include <gtest/gtest.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include <cmath>
#include <limits>

#include "devices/tested.h"

namespace russet {
namespace {

/// A small net in float16, each of whose steps is one plan; the loss of one that overflows is infinite.
struct Training {
  nn::Sequential net;
  optim::Adam optimizer;
  amp::GradScaler scaler;
  Tensor x;

  explicit Training(Device device) : Training(device, nn::NewModules(device)) {}
  Training(Device device, const nn::NewModules&)
      : net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2)),
        optimizer(net.parameters(), {.lr = 0.01}),
        scaler({.init_scale = 256, .growth_interval = 3}),
        x(Tensor::from(std::vector<float>{1, -2, 3, 0.5, 2, 1, -1, 0.25}, {2, 4}, device)) {}

  void step(bool overflow) {
    const Tensor factor =
        Tensor::from<float>({overflow ? std::numeric_limits<float>::infinity() : 1.0F}, {}, x.device());
    in_one_plan([&] {
      Tensor loss;
      {
        const Autocast autocast(DType::float16);
        loss = mean(square(net(x).to(DType::float32))) * factor;
      }
      scaler.scale(loss).backward();
      scaler.unscale_(optimizer);
      optim::clip_grad_norm_(net.parameters(), 1);
      scaler.step(optimizer);
      scaler.update();
      optimizer.zero_grad();
    });
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Tensor& each : net.parameters()) {
      for (const float value : each.to_vector<float>()) all.push_back(value);
    }
    return all;
  }
};

class GradScaler : public testing::TestWithParam<std::string> {
 protected:
  const Device device{GetParam()};
};

TEST_P(GradScaler, NothingIsReadAndFromTheThirdStepOnNothingIsCompiled) {
  Training training(device);
  flush();
  Counters before;
  for (int step = 0; step < 12; ++step) {
    if (step == 2) before = counters();
    training.step(step == 5);
  }
  EXPECT_EQ(counters().plans_compiled, before.plans_compiled) << why_compiled();
  EXPECT_EQ(counters().cache_hits, before.cache_hits + 10);  // a flush each
  EXPECT_EQ(training.optimizer.state_dict().numbers.at("0.step"), 11);
  EXPECT_EQ(training.scaler.get_scale(), 256 * 2 * 0.5 * 2 * 2);
}

TEST_P(GradScaler, AnOverflowSkipsItsStepAlone) {
  Training training(device);
  for (int step = 0; step < 6; ++step) {
    const std::vector<float> before = training.weights();
    training.step(step == 0 || step == 3);
    EXPECT_EQ(training.weights() == before, step == 0 || step == 3) << step;
    for (const float value : training.weights()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST_P(GradScaler, ResumesBitForBit) {
  manual_seed(3);
  Training whole(device);
  manual_seed(3);
  Training first(device);
  for (int step = 0; step < 10; ++step) whole.step(step == 1 || step == 6);
  for (int step = 0; step < 4; ++step) first.step(step == 1);
  Training second(device);
  second.net.load_state_dict(first.net.state_dict());
  second.optimizer.load_state_dict(first.optimizer.state_dict());
  second.scaler.load_state_dict(first.scaler.state_dict());
  EXPECT_EQ(second.optimizer.state_dict().numbers.at("0.step"), 3);
  for (int step = 4; step < 10; ++step) second.step(step == 6);
  EXPECT_EQ(second.weights(), whole.weights());
  EXPECT_EQ(second.scaler.state_dict(), whole.scaler.state_dict());
}

INSTANTIATE_TEST_SUITE_P(Devices, GradScaler, testing::ValuesIn(conformance::tested_devices()));

}  // namespace
}  // namespace russet
