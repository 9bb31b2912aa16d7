// Every model, with hidden layers of an eighth of their widths, on the tested devices: what it answers, and what two
// steps of training make of it, against another device.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "devices/tested.h"

namespace russet {
namespace {

struct Case {
  models::ModelOptions options;
  std::int64_t batch;
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all = {
      {"mlp", {{.dropout = 0.1}, 8}},
      {"lenet5", {{.dropout = 0.1}, 32}},  // enough samples for a GPU to go one by one
      {"alexnet", {{.num_classes = 20, .dropout = 0.1, .image_size = 64}, 4}},
      {"vgg16", {{.num_classes = 20, .dropout = 0.1, .image_size = 32}, 2}},
      {"efficientnet_b0", {{.num_classes = 20, .image_size = 64}, 4}},
      {"efficientnet_b4", {{.num_classes = 20, .image_size = 64}, 4}},
      {"convmixer_768_32", {{.num_classes = 20, .image_size = 28}, 4}},
      {"simclr_resnet18", {{.num_classes = 20}, 4}},
      {"resnet18", {{.num_classes = 20, .image_size = 64}, 4}},
      {"resnet18_cifar", {{.dropout = 0.1}, 4}},
      {"resnet50", {{.num_classes = 20, .image_size = 64}, 4}},
      {"vit_b_16", {{.num_classes = 20, .dropout = 0.1, .image_size = 64}, 2}},
      {"bert_base", {{.config = {{"vocab_size", 1000}, {"max_position_embeddings", 16}}}, 2}},
      {"bert_base_mlm", {{.config = {{"vocab_size", 1000}, {"max_position_embeddings", 16}}}, 2}},
  };
  return all;
}

using Named = std::map<std::string, std::vector<double>>;

/// The device that is believed.
Device judge_of(Device device) { return device == Device("cpu") ? Device(DeviceType::reference) : Device("cpu"); }

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return path.ends_with(end); });
}

class ModelsOnDevices : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const Device device{std::get<0>(GetParam())};
  const std::string name = std::get<1>(GetParam());
  const Case& given = cases().at(name);

  models::Model create(Device on) const {
    models::ModelOptions options = given.options;
    options.width = 0.125;
    options.device = on;
    return models::get_model(name, options);
  }

  /// With values of the cpu's making: normal random numbers differ between devices in their last bits.
  models::Model filled(Device on) const {
    manual_seed(3);
    const StateDict state = create(Device("cpu")).state_dict();
    // Untrained, so narrow and so deep, a network multiplies roundings by thousands. With branches that add less to
    // their shortcuts, with ConvMixer's inputs of ReLU away from zero, and with the small steps that a small classifier
    // gives EfficientNets, it does not. Biases that start at zero are their gradients after a step, which are known
    // less well than values.
    for (const auto& [path, tensor] : state) {
      if (ends_with_any(path, {"bn3.weight", "fn.2.weight"})) tensor.mul_(0.2);
      if (name.starts_with("efficientnet") && path == "classifier.1.weight") tensor.mul_(0.01);
      if (name.starts_with("efficientnet") && path.ends_with(".bias")) tensor.add_(0.1);
      if (name == "convmixer_768_32" && ends_with_any(path, {"stem.0.bias", "fn.0.bias", ".1.bias"})) tensor.add_(2);
    }
    models::Model model = create(on);
    model.load_state_dict(state);
    return model;
  }

  std::vector<Tensor> inputs(const models::Model& model, Device on) const {
    manual_seed(5);
    std::vector<Tensor> made;
    for (const models::Input& input : model.inputs()) {
      Shape sizes = input.shape;
      sizes.insert(0, given.batch);
      const Tensor on_cpu = input.limit > 0 ? randint(0, input.limit, sizes) : randn(sizes);
      made.push_back(on_cpu.to(on));
    }
    return made;
  }

  Tensor target(const models::Model& model, Device on) const {
    Shape sizes{given.batch};
    if (model.spec().answers_tokens) sizes.push_back(model.inputs().front().shape[0]);
    return randint(0, model.num_classes(), sizes).to(on);
  }

  static Tensor loss_of(models::Model& model, const std::vector<Tensor>& x, const Tensor& y) {
    return cross_entropy(model.forward_all(x).flatten(0, -2), y.flatten());
  }
};

/// "" if the numbers agree within `bound` of the largest expected one, or of `floor` if that is larger.
std::string difference(const std::vector<double>& actual, const std::vector<double>& expected, double bound,
                       double floor = 0) {
  if (actual.size() != expected.size()) return fmt::format("{} numbers, not {}", actual.size(), expected.size());
  double largest = floor;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) <= bound * largest) continue;
    return fmt::format("element {}: {} instead of {} (largest {})", i, actual[i], expected[i], largest);
  }
  return "";
}

void expect_alike(const char* what, const Named& actual, const Named& expected, double bound) {
  double largest = 0;
  for (const auto& [path, values] : expected) {
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
  for (const auto& [path, values] : expected) {
    // Of some parameters, as biases before a norm or of keys, the gradient is what rounding leaves of zero.
    EXPECT_EQ(difference(actual.at(path), values, bound, 1e-3 * largest), "") << what << " of " << path;
  }
}

struct Trained {
  std::vector<double> logits;
  std::vector<double> losses;
  Named gradients;  // of the first step
  Named state;      // after the second one
};

TEST_P(ModelsOnDevices, AnswerAndTrainAlike) {
  const auto train = [&](Device on) {
    Trained found;
    models::Model model = filled(on);
    const std::vector<Tensor> x = inputs(model, on);
    const Tensor y = target(model, on);
    {
      const NoGrad guard;
      model.eval();
      found.logits = model.forward_all(x).to_vector<double>();
      model.train();
    }
    manual_seed(7);  // of dropout
    optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
    const auto backward = [&] {
      Tensor loss = loss_of(model, x, y);
      loss.backward();
      return loss;
    };
    found.losses.push_back(backward().item());
    for (const auto& [path, parameter] : model.named_parameters()) {
      found.gradients[path] = parameter.grad().to_vector<double>();
    }
    optimizer.step();
    optimizer.zero_grad();
    Tensor second;
    in_one_plan([&] {  // gradients that nobody reads
      second = backward();
      optimizer.step();
      optimizer.zero_grad();
    });
    found.losses.push_back(second.item());
    for (const auto& [path, tensor] : model.state_dict()) found.state[path] = tensor.to_vector<double>();
    return found;
  };
  const std::uint64_t fallbacks = counters().fallbacks;
  const Trained actual = train(device);
  EXPECT_EQ(counters().fallbacks, fallbacks);
  const Trained expected = train(judge_of(device));
  EXPECT_EQ(difference(actual.logits, expected.logits, 1e-4), "") << "logits";
  EXPECT_EQ(difference(actual.losses, expected.losses, 1e-4), "") << "losses";
  expect_alike("the gradient", actual.gradients, expected.gradients, 1e-3);
  expect_alike("the value after two steps", actual.state, expected.state, 1e-4);
}

TEST_P(ModelsOnDevices, TrainInMixedPrecision) {
  for (const DType type : {DType::bfloat16, DType::float16}) {
    const auto train = [&](Device on, bool enabled) {
      models::Model model = filled(on);
      const std::vector<Tensor> x = inputs(model, on);
      const Tensor y = target(model, on);
      manual_seed(7);
      Trained found;
      const Autocast autocast(type, enabled);
      const Tensor loss = loss_of(model, x, y);
      loss.backward();
      found.losses = {loss.item()};
      const Tensor last = model.parameters().back().grad();
      found.logits = last.to_vector<double>();
      return found;
    };
    const Trained actual = train(device, true);
    const Trained expected = train(judge_of(device), false);
    const double bound = type == DType::bfloat16 ? 0.06 : 0.01;
    EXPECT_EQ(difference(actual.losses, expected.losses, bound), "") << name_of(type);
    EXPECT_EQ(difference(actual.logits, expected.logits, 2 * bound), "") << "last gradient in " << name_of(type);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, given] : cases()) result.push_back(name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelsOnDevices,
                         testing::Combine(testing::ValuesIn(conformance::tested_devices()), testing::ValuesIn(names())),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

TEST(ModelsOnDevicesTable, HoldsAllModels) { EXPECT_EQ(cases().size(), models::list_models().size()); }

}  // namespace
}  // namespace russet
