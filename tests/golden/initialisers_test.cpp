// Initial values: the bounds and deviations of PyTorch's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/models.h>
#include <russet/nn.h>
#include <russet/random.h>

#include <algorithm>
#include <cmath>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::Tensor;
namespace nn = russet::nn;

const Json& file() {
  static const Json json = read_json("initialisers.json.gz");
  return json;
}

/// An empty string if `values` can be a sample of the distribution: mean and deviation within six standard errors.
std::string misfit(std::vector<double> values, const Json& expected, std::int64_t row_length) {
  if (expected.contains("zero_row")) {
    const auto begin = values.begin() + expected.at("zero_row").get<std::int64_t>() * row_length;
    if (std::any_of(begin, begin + row_length, [](double v) { return v != 0; }))
      return "the row of padding is not zero";
    values.erase(begin, begin + row_length);
  }
  const std::string kind = expected.at("kind");
  if (kind == "constant") {
    const double value = expected.at("value");
    const bool all = std::all_of(values.begin(), values.end(), [&](double v) { return v == value; });
    return all ? "" : fmt::format("not all are {}", value);
  }
  const bool flat = kind == "uniform";
  const double deviation =
      flat ? expected.at("bound").get<double>() / std::sqrt(3.0) : expected.at("deviation").get<double>();
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  const auto count = static_cast<double>(values.size());
  const double error = 6 * deviation / std::sqrt(count);
  if (std::abs(sum / count) > error) return fmt::format("the mean is {}, of {} values", sum / count, count);
  const double found = std::sqrt(squares / count);
  if (std::abs(found - deviation) > error) return fmt::format("the deviation is {}, not {}", found, deviation);
  if (flat && largest > static_cast<double>(expected.at("bound").get<float>()))
    return fmt::format("{} is beyond the bound", largest);
  return {};
}

std::string misfit(const Tensor& tensor, const Json& expected) {
  const std::int64_t row = tensor.dim() > 0 && tensor.size(0) > 0 ? tensor.numel() / tensor.size(0) : 1;
  return misfit(tensor.to_vector<double>(), expected, row);
}

void check(const russet::StateDict& state, const Json& expected) {
  for (const Json& entry : expected) {
    const std::string name = entry[0];
    const Tensor* tensor = state.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(misfit(*tensor, entry[2]), "") << name << " " << entry[2].dump();
  }
}

TEST(Initialisers, OfModels) {
  russet::manual_seed(1);
  for (const auto& [name, expected] : file().at("models").items()) {
    SCOPED_TRACE(name);
    check(russet::models::get_model(name).state_dict(), expected);
  }
}

russet::StateDict layer(const std::string& kind) {
  if (kind == "Linear") return nn::Linear(20, 30).state_dict();
  if (kind == "Conv2d") return nn::Conv2d(8, 16, {3, 5}).state_dict();
  if (kind == "Conv2dGroups") return nn::Conv2d(8, 16, 3, {.groups = 4}).state_dict();
  if (kind == "Conv1d") return nn::Conv1d(8, 16, 7).state_dict();
  if (kind == "BatchNorm2d") return nn::BatchNorm2d(40).state_dict();
  if (kind == "LayerNorm") return nn::LayerNorm(40).state_dict();
  if (kind == "Embedding") return nn::Embedding(50, 40).state_dict();
  if (kind == "EmbeddingPadding") return nn::Embedding(50, 40, {.padding_idx = 3}).state_dict();
  if (kind == "MultiheadAttention") return nn::MultiheadAttention(32, 4).state_dict();
  if (kind == "TransformerEncoderLayer")
    return nn::TransformerEncoderLayer(32, 4, {.dim_feedforward = 64}).state_dict();
  throw std::runtime_error("no layer is called " + kind);
}

TEST(Initialisers, OfLayers) {
  russet::manual_seed(2);
  for (const Json& record : file().at("layers")) {
    SCOPED_TRACE(record[0].get<std::string>());
    check(layer(record[0]), record[2]);
  }
}

nn::init::Nonlinearity nonlinearity_of(const std::string& name) {
  using enum nn::init::Nonlinearity;
  if (name == "linear") return linear;
  if (name == "sigmoid") return sigmoid;
  if (name == "tanh") return tanh;
  if (name == "relu") return relu;
  return name == "selu" ? selu : leaky_relu;
}

void initialise(const std::string& name, const Tensor& x, const Json& options) {
  nn::init::KaimingOptions kaiming;
  kaiming.a = options.value("a", kaiming.a);
  if (options.contains("mode")) kaiming.mode = nn::init::Fan::out;
  if (options.contains("nonlinearity")) kaiming.nonlinearity = nonlinearity_of(options.at("nonlinearity"));
  if (name == "xavier_uniform_") {
    nn::init::xavier_uniform_(x, options.value("gain", 1.0));
  } else if (name == "xavier_normal_") {
    nn::init::xavier_normal_(x);
  } else if (name == "kaiming_uniform_") {
    nn::init::kaiming_uniform_(x, kaiming);
  } else if (name == "kaiming_normal_") {
    nn::init::kaiming_normal_(x, kaiming);
  } else if (options.contains("std")) {
    nn::init::trunc_normal_(x, 0, options.at("std"));
  } else {
    nn::init::trunc_normal_(x, 0, 1, options.at("a"), options.at("b"));
  }
}

TEST(Initialisers, Functions) {
  russet::manual_seed(3);
  for (const Json& record : file().at("functions")) {
    SCOPED_TRACE(record.dump());
    const Tensor x = Tensor::from(std::vector<float>(static_cast<std::size_t>(numel(shape_of(record[1]))), 0.0F),
                                  shape_of(record[1]));
    initialise(record[0], x, record[2]);
    EXPECT_EQ(misfit(x, record[3]), "");
  }
  for (const auto& [name, gain] : file().at("gains").items()) {
    EXPECT_NEAR(nn::init::gain_of(nonlinearity_of(name)), gain.get<double>(), 1e-12) << name;
  }
}

}  // namespace
}  // namespace golden
