// Parameters that are updated where their gradient is computed, on devices that can: whole steps of training as one
// plan, held against the reference.
#include <gtest/gtest.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/runtime.h>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

class Updates : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

  /// The parameters after three steps, each one plan.
  Results train(Device on, const std::vector<Shape>& shapes, const MakeOptimizer& make,
                const std::function<Tensor(const Results&)>& loss) {
    restart();
    Results parameters;
    for (const Shape& shape : shapes) parameters.push_back(numbers(shape, on).requires_grad_());
    const auto optimizer = make(parameters);
    flush();
    for (int step = 0; step < 3; ++step) {
      if (step == 2) watch(on);
      in_one_plan([&] {
        loss(parameters).backward();
        optimizer->step();
        optimizer->zero_grad();
      });
    }
    observe_plans(on, nullptr);
    for (Tensor& parameter : parameters) parameter = parameter.detach();
    return parameters;
  }

  void watch(Device on) {
    output_bytes_ = 0;
    epilogues_ = 0;
    observe_plans(on, [this](const PlanSummary& plan) {
      output_bytes_ += plan.output_bytes;
      for (const StepInfo& step : plan.steps) epilogues_ += step.detail.find("epilogue") != std::string::npos ? 1 : 0;
    });
  }

  /// Smaller parameters may get new memory when they share a launch; each program here has larger ones.
  static constexpr std::size_t large_bytes = std::size_t{64} << 10;

  /// Holds the device against the reference; where contractions take epilogues, large parameters are updated in place.
  void expect_alike(const std::vector<Shape>& shapes, const MakeOptimizer& make,
                    const std::function<Tensor(const Results&)>& loss, double bound) {
    const Results actual = train(device, shapes, make, loss);
    if (conformance::fuses_contractions(GetParam())) {
      EXPECT_GE(epilogues_, 1);
      EXPECT_LT(output_bytes_, large_bytes);
    }
    EXPECT_EQ(difference(actual, train(reference, shapes, make, loss), bound), "");
  }

  static MakeOptimizer sgd(const optim::SGDOptions& options) {
    return [=](std::vector<Tensor> parameters) { return std::make_unique<optim::SGD>(std::move(parameters), options); };
  }

  const Device device{GetParam()};

 private:
  std::size_t output_bytes_ = 0;
  int epilogues_ = 0;
};

TEST_P(Updates, OfProducts) {
  struct Size {
    std::int64_t rows, depth, columns;
  };
  for (const Size size : {Size{64, 128, 132}, Size{70, 131, 130}, Size{600, 129, 128}}) {
    const Tensor x = numbers({size.rows, size.depth}, reference);
    const std::vector<Shape> shapes{{size.columns, size.depth}, {size.columns}, {size.depth, size.columns}};
    const auto loss = [&](const Results& p) {
      const Tensor h = tanh(linear(x.to(p[0].device()), p[0] * 0.1, p[1]));
      return mean(square(matmul(h.t(), matmul(h, p[2].t())))) * 1e-3;
    };
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.depth << " x " << size.columns);
    expect_alike(shapes, sgd({.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-3}), loss, 1e-4);
  }
}

TEST_P(Updates, OfConvolutionsAndOfWhatAdamKeeps) {
  const Tensor x = numbers({2, 3, 11, 9}, reference);
  const auto loss = [&](const Results& p) {
    const Tensor h = relu(conv2d(x.to(p[0].device()), p[0], p[1], {.padding = 1}));
    return mean(square(conv2d(h, p[2], {}, {.stride = 2})));
  };
  const auto adam = [](std::vector<Tensor> parameters) {
    return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions{.lr = 0.01});
  };
  expect_alike({{40, 3, 3, 3}, {40}, {56, 40, 3, 3}}, adam, loss, 1e-4);
}

// The gradient is rounded to 16 bits before it updates a parameter of 32.
TEST_P(Updates, InMixedPrecision) {
  const Tensor x = numbers({64, 48}, reference);
  const auto loss = [&](const Results& p) {
    const Autocast autocast(DType::bfloat16);
    return mean(square(linear(x.to(p[0].device()), p[0]).to(DType::float32)));
  };
  expect_alike({{352, 48}}, sgd({.lr = 0.1, .momentum = 0.9}), loss, 1e-2);
}

TEST_P(Updates, OfEveryOptimizer) {
  const Tensor x = numbers({16, 12}, reference);
  const auto loss = [&](const Results& p) { return mean(square(tanh(linear(x.to(p[0].device()), p[0], p[1])))); };
  for (const std::string& name : optim::list_optimizers()) {
    SCOPED_TRACE(name);
    const auto make = [&](const std::vector<Tensor>& parameters) {
      return optim::make_optimizer(optim::usual_choice(name), parameters);
    };
    const std::vector<Shape> shapes{{8, 12}, {8}};
    EXPECT_EQ(difference(train(device, shapes, make, loss), train(reference, shapes, make, loss), 1e-4), "");
  }
}

// The state of optimizers begins in memory that held other numbers before.
TEST_P(Updates, ClearedMemoryHasZerosAlone) {
  for (const std::int64_t size : {1, 100, 5000, 300000}) {
    for (int i = 0; i < 3; ++i) {
      {
        const Tensor before =
            (Tensor::from(std::vector<float>(static_cast<std::size_t>(size), 7), {size}, device) + 1).clone();
        flush();
      }
      const Tensor zeros = Tensor::cleared({size}, {DType::float32, device});
      EXPECT_EQ(sum(abs(zeros)).to(reference).item<float>(), 0) << size;
      EXPECT_EQ(zeros.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(size))) << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Updates, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
