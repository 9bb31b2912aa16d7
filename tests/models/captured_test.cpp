// Captured functions on devices: steps that are not recorded give the numbers of those that are. Not on mps, whose
// kernels would be some more to compile for the simulator: what captures is the same there.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <string>
#include <vector>

#include "devices/tested.h"

namespace russet {
namespace {

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> state;
  std::uint64_t replays = 0;
};

/// Ten steps on batches of other images each, with a new learning rate after seven.
Trained train(const std::string& name, Device device, DType precision, bool captures) {
  manual_seed(5);
  models::Model model = models::get_model(name, {.num_classes = 10, .device = device});
  optim::SGD optimizer(model.parameters(), {.lr = 0.02, .momentum = 0.9});
  const auto step = [&](const std::vector<Tensor>& batch) {
    const Autocast scope = autocast_to(precision);
    const Tensor loss = cross_entropy(model.forward(batch[0]), batch[1]);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return std::vector{loss.detach()};
  };
  CapturedFunction captured(step);
  Trained trained;
  for (int i = 0; i < 10; ++i) {
    if (i == 7) optimizer.set_lr(0.01);
    const Tensor images = randn({4, 1, 28, 28}, {.device = device});
    const Tensor labels = randint(0, 10, {4}, {.device = device});
    std::vector<Tensor> loss;
    if (captures) {
      loss = captured({images, labels});
    } else {
      in_one_plan([&] { loss = step({images, labels}); });
    }
    trained.losses.push_back(static_cast<float>(loss[0].item()));
  }
  for (const auto& entry : model.state_dict()) trained.state.push_back(entry.second.to_vector<float>());
  trained.replays = captured.replays();
  return trained;
}

TEST(CapturedFunctionOnDevices, TrainsAsRecordedStepsDo) {
  for (const std::string& name : conformance::tested_devices()) {
    const Device device(name);
    if (device.type == DeviceType::mps) continue;
    for (const DType precision : {DType::float32, DType::bfloat16}) {
      SCOPED_TRACE(name + " " + std::string(name_of(precision)));
      const Trained captured = train("lenet5", device, precision, true);
      const Trained recorded = train("lenet5", device, precision, false);
      EXPECT_GE(captured.replays, 4U);
      EXPECT_EQ(captured.losses, recorded.losses);
      EXPECT_EQ(captured.state, recorded.state);
    }
  }
}

}  // namespace
}  // namespace russet
