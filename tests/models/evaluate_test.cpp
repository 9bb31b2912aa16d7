// Evaluation: what the model says of each batch, of whatever size, in evaluation mode, which leaves no trace.
#include <russet/train/evaluate.h>

#include <gtest/gtest.h>
#include <russet/data/masked_tokens.h>
#include <russet/russet.h>

#include <string>
#include <vector>

#include "devices/tested.h"

namespace russet {
namespace {

constexpr std::int64_t samples = 22;
constexpr std::int64_t batch = 4;  // the last one has two

class Evaluate : public testing::TestWithParam<std::string> {
 protected:
  /// With batch norm and dropout: another mode gives other numbers.
  static models::Model seeded_model(Device device) {
    manual_seed(2);
    return models::get_model("resnet18_cifar",
                             {.num_classes = 10, .dropout = 0.5, .in_channels = 1, .width = 0.125, .device = device});
  }

  data::DataLoader loader(const Tensor& targets, std::int64_t count = samples) const {
    return {data::TensorDataset(images.narrow(0, 0, count), targets.narrow(0, 0, count)),
            {.batch = batch, .workers = 0, .device = device}};
  }

  const Device device{GetParam()};
  models::Model model = seeded_model(device);
  Tensor images = randn({samples, 1, 28, 28});
  Tensor classes = randint(0, 10, {samples});
};

TEST_P(Evaluate, IsTheMeanOverAllSamples) {
  std::int64_t batches = 0;
  data::DataLoader all = loader(classes);
  const train::Evaluation found = train::evaluate(model, all, {.progress = [&](std::int64_t done) { batches = done; }});
  EXPECT_EQ(batches, (samples + batch - 1) / batch);
  EXPECT_EQ(found.samples, samples);
  const nn::ModeScope mode(model, false);
  const NoGrad no_grad;
  const Tensor output = model.forward(images.to(device));
  const Tensor targets = classes.to(device);
  EXPECT_NEAR(found.loss, cross_entropy(output, targets).item(), 1e-5);
  EXPECT_EQ(found.accuracy, sum(eq(argmax(output, 1), targets)).item() / samples);
}

TEST_P(Evaluate, ReadsParametersAnewEachTime) {
  data::DataLoader all = loader(classes);
  const double before = train::evaluate(model, all).loss;
  {
    const NoGrad no_grad;
    for (const Tensor& parameter : model.parameters()) Tensor(parameter).mul_(0.5);
  }
  const double after = train::evaluate(model, all).loss;
  EXPECT_NE(before, after);
  EXPECT_EQ(train::evaluate(model, all).loss, after);
}

TEST_P(Evaluate, RecordsAFewBatchesOfEachSize) {
  const auto recorded = [&](std::int64_t count) {
    data::DataLoader some = loader(classes, count);
    const std::uint64_t before = counters().nodes_recorded;
    train::evaluate(model, some);
    return counters().nodes_recorded - before;
  };
  EXPECT_LT(recorded(batch), recorded(2 * batch));
  EXPECT_EQ(recorded(3 * batch), recorded(5 * batch));
}

TEST_P(Evaluate, PutsModesBackThoughABatchFails) {
  nn::AnyModule(model.named_children().front().second).get().eval();
  const auto modes = [&] {
    std::vector<bool> all;
    model.apply([&](nn::Module& module) { all.push_back(module.is_training()); });
    return all;
  };
  const std::vector<bool> before = modes();
  const Tensor mistaken = classes.clone();
  mistaken[14].fill_(10);  // in the fourth batch
  data::DataLoader bad = loader(mistaken);
  EXPECT_THROW(train::evaluate(model, bad), IndexError);
  EXPECT_EQ(modes(), before);
  data::DataLoader good = loader(classes);
  EXPECT_EQ(train::evaluate(model, good).samples, samples);
  EXPECT_EQ(modes(), before);
}

/// Batches have different numbers of them.
TEST_P(Evaluate, OfMaskedTokensIsTheMeanOverThese) {
  models::Model words = models::get_model("bert_base_mlm", {.config = {{"vocab_size", 50},
                                                                       {"hidden_size", 16},
                                                                       {"num_hidden_layers", 1},
                                                                       {"num_attention_heads", 2},
                                                                       {"intermediate_size", 32},
                                                                       {"max_position_embeddings", 12}},
                                                            .device = device});
  const Tensor ids = randint(0, 50, {samples, 7});
  const Tensor targets = where(rand({samples, 7}) < 0.4, ids, full({}, data::unmasked, {DType::int64}));
  data::DataLoader all{data::TensorDataset(ids, targets), {.batch = batch, .workers = 0, .device = device}};
  const train::Evaluation found = train::evaluate(words, all, {.objective = train::Objective::masked_tokens});
  const nn::ModeScope mode(words, false);
  const NoGrad no_grad;
  const Tensor output = words.forward(ids.to(device));
  const Tensor wanted = targets.to(device);
  EXPECT_NEAR(found.loss, cross_entropy(output.flatten(0, 1), wanted.flatten()).item(), 1e-5);
  const double masked = sum(ne(wanted, data::unmasked)).item();
  EXPECT_EQ(found.accuracy, sum(eq(argmax(output, 2), wanted)).item() / masked);
}

INSTANTIATE_TEST_SUITE_P(Devices, Evaluate, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace russet
