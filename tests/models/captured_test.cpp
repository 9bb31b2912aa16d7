// Captured functions on devices: steps that are not recorded give the bits of those that are, random numbers included.
// Not on mps, whose kernels would be some more to compile for the simulator: what captures is the same there.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <string>
#include <vector>

#include "devices/tested.h"

namespace russet {
namespace {

struct Case {
  const char* model;
  models::ModelOptions options;
};

std::vector<Case> cases() {
  return {
      {"lenet5", {.num_classes = 10, .dropout = 0.1}},
      {"efficientnet_b0", {.num_classes = 10, .image_size = 32, .width = 0.125}},
      {"bert_base",
       {.num_classes = 10, .width = 0.125, .config = {{"vocab_size", 1000}, {"max_position_embeddings", 16}}}},
  };
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> state;
  std::uint64_t replays = 0;
};

/// Eight steps on other batches each, at learning rates that fall.
Trained train(Case given, Device device, DType precision, bool captures) {
  manual_seed(5);
  given.options.device = device;
  models::Model model = models::get_model(given.model, given.options);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.001});
  const auto step = [&](const std::vector<Tensor>& batch) {
    const Autocast scope = autocast_to(precision);
    const Tensor loss = cross_entropy(model.forward_all({batch.begin() + 1, batch.end()}), batch[0]);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return std::vector{loss.detach()};
  };
  CapturedFunction captured(step);
  Trained trained;
  for (int i = 0; i < 8; ++i) {
    optimizer.set_lr(0.001 / (1 + i));
    std::vector<Tensor> batch{randint(0, 10, {4}, {.device = device})};
    for (const models::Input& input : model.inputs()) {
      Shape sizes = input.shape;
      sizes.insert(0, 4);
      batch.push_back(input.limit > 0 ? randint(0, input.limit, sizes, {.device = device})
                                      : randn(sizes, {.device = device}));
    }
    std::vector<Tensor> loss;
    if (captures) {
      loss = captured(batch);
    } else {
      in_one_plan([&] { loss = step(batch); });
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
    for (const Case& given : cases()) {
      for (const DType precision : {DType::float32, DType::bfloat16}) {
        SCOPED_TRACE(name + " " + given.model + " " + std::string(name_of(precision)));
        const Trained captured = train(given, device, precision, true);
        const Trained recorded = train(given, device, precision, false);
        EXPECT_EQ(captured.replays, 5U);
        EXPECT_EQ(captured.losses, recorded.losses);
        EXPECT_EQ(captured.state, recorded.state);
      }
    }
  }
}

}  // namespace
}  // namespace russet
