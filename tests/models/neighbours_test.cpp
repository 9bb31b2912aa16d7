// Nearest neighbours by a model's features: each sample keeps its class, and batches of all sizes count.
#include <russet/train/neighbours.h>

#include <gtest/gtest.h>
#include <russet/data.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include "devices/tested.h"

namespace russet {
namespace {

class Neighbours : public testing::TestWithParam<std::string> {
 protected:
  const Device device{GetParam()};
};

data::DataLoader loader_of(const Tensor& images, const Tensor& classes, Device device) {
  return {data::TensorDataset(images, classes), {.batch = 4, .workers = 0, .device = device}};
}

// Images are their own nearest neighbours, if their features and classes lie in the same order.
TEST_P(Neighbours, FindEveryImageAmongImages) {
  manual_seed(1);
  models::Model model = models::get_model("simclr_resnet18", {.width = 0.125});
  model.to(device);
  const Tensor images = randn({10, 3, 32, 32});
  const Tensor classes = Tensor::from(std::vector<std::int64_t>{3, 1, 4, 0, 2, 9, 5, 8, 6, 7}, {10});
  data::DataLoader bank = loader_of(images, classes, device);
  data::DataLoader test = loader_of(images.narrow(0, 3, 7), classes.narrow(0, 3, 7), device);
  std::int64_t batches = 0;
  const train::NeighbourEvaluation options{.neighbours = {.neighbours = 1},
                                           .progress = [&](std::int64_t done) { batches = done; }};
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(train::neighbour_accuracy(model, bank, test, options), 1.0);
    EXPECT_EQ(batches, 3 + 2);
  }
  const Tensor others = Tensor::from(std::vector<std::int64_t>{1, 3, 4, 0, 2, 9, 5, 8, 6, 7}, {10});
  data::DataLoader mistaken = loader_of(images, others, device);
  EXPECT_DOUBLE_EQ(train::neighbour_accuracy(model, bank, mistaken, options), 0.8);
}

INSTANTIATE_TEST_SUITE_P(Devices, Neighbours, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace russet
