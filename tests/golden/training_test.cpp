// Ten steps of training against PyTorch, and the names and shapes of the models' tensors.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;

struct Batch {
  std::vector<Tensor> inputs;
  Tensor labels;
};

Json record_of(const std::string& model) {
  for (const Json& record : read_json("training.json.gz")) {
    if (record.at("model") == model) return record;
  }
  throw std::runtime_error("no training is recorded of " + model);
}

/// Entry i of the record's state dict, from the generator at offset i.
russet::StateDict weights_of(const Json& record) {
  russet::StateDict state;
  std::uint64_t offset = 0;
  for (const Json& entry : record.at("state")) {
    const Tensor values = real(record.at("seed"), offset++, shape_of(entry[1]), entry[2], entry[3], DType::float32);
    state.insert(entry[0], values);
  }
  return state;
}

/// Every step sees this one batch.
Batch image_batch(std::uint64_t seed, std::uint64_t) {
  return {{real(seed, 1'000'000, {8, 3, 32, 32}, -1.7, 1.7, DType::float32)},
          integer(seed, 2'000'000, {8}, 0, 10, DType::int64)};
}

Batch token_batch(std::uint64_t seed, std::uint64_t step) {
  const Tensor lengths = integer(seed, 3'000'000 + step, {8}, 8, 33, DType::int64);
  const Tensor mask = russet::lt(russet::arange(32), lengths.unsqueeze(1)).to(DType::int64);
  return {{integer(seed, 1'000'000 + step, {8, 32}, 1, 1000, DType::int64), mask,
           integer(seed, 4'000'000 + step, {8, 32}, 0, 2, DType::int64)},
          integer(seed, 2'000'000 + step, {8}, 0, 6, DType::int64)};
}

// A gradient that is zero but for rounding (of a key's bias: softmax does not see it) has no relative error: it counts
// against a ten-thousandth of the largest.
void compare_gradients(const russet::nn::Module& model, const Json& expected) {
  std::map<std::string, Tensor> gradients;
  for (const auto& [name, parameter] : model.named_parameters()) gradients[name] = parameter.grad();
  double largest = 0;
  for (const Json& entry : expected) largest = std::max(largest, entry.at("norm").get<double>());
  for (const Json& entry : expected) {
    const std::string name = entry.at("name");
    ASSERT_TRUE(gradients[name].defined()) << name;
    const std::vector<double> found = gradients[name].to_vector<double>();
    double sum = 0;
    for (const double value : found) sum += value * value;
    const double norm = entry.at("norm");
    const double slack = 1e-3 * std::max(norm, 1e-4 * largest);
    EXPECT_NEAR(std::sqrt(sum), norm, slack) << name;
    for (std::size_t i = 0; i < entry.at("at").size(); ++i) {
      EXPECT_NEAR(found.at(entry.at("at")[i].get<std::size_t>()), entry.at("values")[i].get<double>(), slack) << name;
    }
  }
}

void train(const Json& record, russet::nn::Module& model, russet::optim::Optimizer& optimizer,
           Batch (*batch)(std::uint64_t, std::uint64_t)) {
  model.load_state_dict(weights_of(record));
  model.train();
  for (std::uint64_t step = 0; step < record.at("losses").size(); ++step) {
    const Batch now = batch(record.at("seed"), step);
    optimizer.zero_grad();
    const Tensor loss = russet::cross_entropy(model.forward_all(now.inputs).flatten(0, -2), now.labels.flatten());
    loss.backward();
    if (step == 0) compare_gradients(model, record.at("gradients"));
    optimizer.step();
    EXPECT_NEAR(loss.item(), record.at("losses")[step].get<double>(), 1e-4) << "step " << step;
  }
  std::map<std::string, Tensor> buffers;
  for (const auto& [name, buffer] : model.named_buffers()) buffers[name] = buffer;
  for (const Json& entry : record.at("statistics")) {
    const double norm = entry.at("norm");
    EXPECT_NEAR(russet::norm(buffers[entry.at("name")]).item(), norm, 1e-3 * std::max(norm, 1e-2)) << entry.dump();
  }
}

TEST(Training, ResNet18OnSmallImages) {
  const Json record = record_of("resnet18_cifar");
  auto model = russet::models::resnet18_cifar();
  russet::optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  train(record, model, optimizer, image_batch);
}

russet::models::BertConfig bert_config(const Json& config) {
  return {.vocab_size = config.at("vocab_size"),
          .hidden_size = config.at("hidden_size"),
          .num_hidden_layers = config.at("num_hidden_layers"),
          .num_attention_heads = config.at("num_attention_heads"),
          .intermediate_size = config.at("intermediate_size"),
          .max_position_embeddings = config.at("max_position_embeddings"),
          .num_labels = config.value("num_labels", russet::models::BertConfig{}.num_labels),
          .hidden_dropout_prob = 0,
          .attention_probs_dropout_prob = 0};
}

TEST(Training, BertOfTwoLayers) {
  const Json record = record_of("bert");
  russet::models::BertForSequenceClassification model(bert_config(record.at("options").at("config")));
  russet::optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  train(record, model, optimizer, token_batch);
}

/// Of token_batch, with the words of one token in seven.
Batch masked_batch(std::uint64_t seed, std::uint64_t step) {
  const Tensor words = integer(seed, 2'000'000 + step, {8, 32}, 0, 1000, DType::int64);
  const Tensor chosen = integer(seed, 5'000'000 + step, {8, 32}, 0, 7, DType::int64);
  return {token_batch(seed, step).inputs, russet::where(russet::eq(chosen, 0), words, -100)};
}

TEST(Training, BertOfMaskedWords) {
  const Json record = read_json("masked_words.json.gz");
  russet::models::BertForMaskedLM model(bert_config(record.at("options").at("config")));
  model.load_state_dict(weights_of(record));
  model.eval();
  const std::vector<double> all = model.forward_all(token_batch(record.at("seed"), 0).inputs).to_vector<double>();
  std::vector<double> logits;
  for (std::size_t i = 0; i < all.size(); i += record.at("stride").get<std::size_t>()) logits.push_back(all[i]);
  EXPECT_EQ(difference(logits, numbers(record.at("logits")), 1e-4), "");
  russet::optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  train(record, model, optimizer, masked_batch);
}

TEST(Models, StateDictsHaveTheNamesAndShapesOfPyTorch) {
  const Json states = read_json("state_dicts.json.gz");
  for (const std::string& name : russet::models::list_models()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(states.contains(name));
    const russet::StateDict found = russet::models::get_model(name).state_dict();
    std::map<std::string, std::string> expected;
    for (const Json& entry : states.at(name)) {
      expected[entry[0]] = fmt::format("{} {}", to_string(shape_of(entry[1])), entry[2].get<std::string>());
    }
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [key, tensor] : found) {
      EXPECT_EQ(fmt::format("{} {}", to_string(tensor.sizes()), russet::name_of(tensor.dtype())), expected[key]) << key;
    }
  }
}

}  // namespace
}  // namespace golden
