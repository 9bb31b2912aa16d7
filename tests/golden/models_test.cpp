// Models of images at an eighth of their widths against torchvision and timm: logits, and every gradient of a step.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>

#include <cmath>
#include <map>

#include "base/philox.h"
#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;

constexpr std::uint64_t first_projection = 100'000;

const Json& records() {
  static const Json json = read_json("models.json.gz");
  return json;
}

/// Entry i of the record's state dict, from the generator at offset i.
russet::StateDict weights_of(const Json& record) {
  russet::StateDict state;
  std::uint64_t offset = 0;
  for (const Json& entry : record.at("state")) {
    state.insert(entry[0], real(record.at("seed"), offset++, shape_of(entry[1]), entry[2], entry[3], DType::float32));
  }
  return state;
}

double projection(const std::vector<double>& values, std::uint64_t seed, std::uint64_t offset) {
  double sum = 0;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const double random = static_cast<double>(russet::base::uniform_at(seed, offset, i)) - 0.5;
    sum += values[i] * random * std::sqrt(12.0);
  }
  return sum;
}

/// How far a gradient is from the expected one in norm, of which its projections on random vectors tell.
double distance(const std::vector<double>& gradient, const Json& expected, std::uint64_t seed, std::uint64_t offset) {
  double squares = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const double difference = projection(gradient, seed, offset + k) - expected[k].get<double>();
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(expected.size()));
}

// A gradient that is zero but for rounding (of a bias before a norm) has no relative error: it counts against a
// thousandth of the largest.
void compare_gradients(const russet::nn::Module& model, const Json& record) {
  std::map<std::string, Tensor> gradients;
  for (const auto& [name, parameter] : model.named_parameters()) gradients[name] = parameter.grad();
  const Json& expected = record.at("gradients");
  ASSERT_EQ(gradients.size(), expected.size());
  double largest = 0;
  for (const Json& entry : expected) largest = std::max(largest, entry[1].get<double>());
  std::uint64_t offset = first_projection;
  for (const Json& entry : expected) {
    const std::string name = entry[0];
    ASSERT_TRUE(gradients[name].defined()) << name;
    const double norm = entry[1];
    EXPECT_LE(distance(gradients[name].to_vector<double>(), entry[2], record.at("seed"), offset),
              1e-3 * std::max(norm, 1e-3 * largest))
        << name;
    offset += entry[2].size();
  }
}

class ModelsOfImages : public testing::TestWithParam<std::size_t> {};

TEST_P(ModelsOfImages, LogitsAndGradients) {
  const Json& record = records().at(GetParam());
  const std::int64_t size = record.at("image_size");
  const std::int64_t batch = record.at("batch");
  const std::int64_t classes = record.at("classes");
  const std::uint64_t seed = record.at("seed");
  russet::models::Model model = russet::models::get_model(
      record.at("model").get<std::string>(),
      {.num_classes = classes, .dropout = 0, .image_size = size, .width = record.at("width")});
  model.load_state_dict(weights_of(record));
  const Tensor x = real(seed, 1'000'000, {batch, 3, size, size}, -1.7, 1.7, DType::float32);
  const Tensor labels = integer(seed, 2'000'000, {batch}, 0, classes, DType::int64);
  {
    const russet::NoGrad guard;
    model.eval();
    EXPECT_EQ(difference(model(x).to_vector<double>(), numbers(record.at("logits")), 1e-4), "");
    model.train();
  }
  russet::cross_entropy(model(x), labels).backward();
  compare_gradients(model, record);
}

INSTANTIATE_TEST_SUITE_P(All, ModelsOfImages, testing::Range(std::size_t{0}, records().size()), [](const auto& info) {
  return records().at(info.param).at("model").template get<std::string>();
});

}  // namespace
}  // namespace golden
