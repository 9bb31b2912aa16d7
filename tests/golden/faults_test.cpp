// A training that catches the errors of bad batches and goes on ends with PyTorch's weights and statistics.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/runtime.h>

#include <memory>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;

struct Sizes {
  std::int64_t batch, width, hidden, classes;
};

/// Steps inside or outside of in_one_plan, with labels in memory or computed.
struct Way {
  bool one_plan;
  bool computed;
};

class Training {
 public:
  Training(const Json& record, const std::string& optimizer, Way way)
      : record_(record), seed_(record.at("seed")), way_(way) {
    const Json& sizes = record.at("sizes");
    sizes_ = {sizes[0], sizes[1], sizes[2], sizes[3]};
    network_ = std::make_unique<russet::nn::Sequential>(russet::nn::Linear(sizes_.width, sizes_.hidden),
                                                        russet::nn::BatchNorm1d(sizes_.hidden), russet::nn::ReLU(),
                                                        russet::nn::Linear(sizes_.hidden, sizes_.classes));
    network_->to(DType::float64);
    std::uint64_t offset = 0;
    for (const Tensor& parameter : network_->parameters()) {
      parameter.detach().copy_(real(seed_, offset++, parameter.sizes(), -0.5, 0.5, DType::float64));
    }
    if (optimizer == "adam") {
      optimizer_ =
          std::make_unique<russet::optim::Adam>(network_->parameters(), russet::optim::AdamOptions{.lr = 0.01});
    } else {
      optimizer_ = std::make_unique<russet::optim::SGD>(network_->parameters(),
                                                        russet::optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    }
  }

  /// Whether there was an error.
  bool step(std::uint64_t number, const std::string& fault) {
    try {
      if (way_.one_plan) {
        russet::in_one_plan([&] { take(number, fault); });
      } else {
        take(number, fault);
      }
      russet::synchronize();
    } catch (const russet::Error&) {
      return true;
    }
    return false;
  }

  russet::StateDict state() const { return network_->state_dict(); }

 private:
  void take(std::uint64_t number, const std::string& fault) {
    optimizer_->zero_grad();
    Tensor x = real(seed_, 1000 + number, {sizes_.batch, sizes_.width}, -1, 1, DType::float64);
    const Tensor labels = integer(seed_, 2000 + number, {sizes_.batch}, 0, sizes_.classes, DType::int64);
    if (fault == "label") labels[static_cast<std::int64_t>(number) % sizes_.batch].fill_(7);
    if (fault == "index") {
      x = russet::index_select(x, 0, Tensor::from<std::int64_t>({0, 1, 2, 3, 4, sizes_.batch}, {sizes_.batch}));
    }
    if (fault == "shape") x = x.narrow(1, 0, sizes_.width - 1);
    if (!way_.computed) labels.to_bytes();
    russet::cross_entropy((*network_)(x), labels).backward();
    optimizer_->step();
  }

  const Json& record_;
  std::uint64_t seed_;
  Way way_;
  Sizes sizes_{};
  std::unique_ptr<russet::nn::Sequential> network_;
  std::unique_ptr<russet::optim::Optimizer> optimizer_;
};

void check(const std::string& optimizer) {
  const Json record = read_json("faults.json.gz");
  const Json& faults = record.at("faults");
  for (const Way way : {Way{false, false}, Way{false, true}, Way{true, false}, Way{true, true}}) {
    SCOPED_TRACE(testing::Message() << "one plan: " << way.one_plan << ", labels computed: " << way.computed);
    Training training(record, optimizer, way);
    for (std::uint64_t number = 0; number < record.at("steps"); ++number) {
      const std::string fault = faults[number % faults.size()];
      EXPECT_EQ(training.step(number, fault), fault != "none") << "step " << number;
    }
    const russet::StateDict state = training.state();
    for (const Json& entry : record.at(optimizer)) {
      const std::string name = entry[0];
      EXPECT_EQ(difference(state.at(name).to_vector<double>(), numbers(entry[2]), 1e-9), "") << name;
    }
  }
}

TEST(Faults, LeaveATrainingWithSGDAsInPyTorch) { check("sgd"); }
TEST(Faults, LeaveATrainingWithAdamAsInPyTorch) { check("adam"); }

}  // namespace
}  // namespace golden
