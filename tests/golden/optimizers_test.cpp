// Optimizers, learning-rate schedules and gradient clipping against PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/optim.h>

#include <cmath>
#include <limits>
#include <memory>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;
namespace optim = russet::optim;

class Optimizers : public testing::Test {
 protected:
  static const Json& file() {
    static const Json json = read_json("optimizers.json.gz");
    return json;
  }
  static std::vector<Tensor> parameters(DType dtype) {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < file().at("shapes").size(); ++i) {
      made.push_back(real(file().at("seed"), i, shape_of(file().at("shapes")[i]), -1, 1, dtype).requires_grad_());
    }
    return made;
  }
  static void set_gradients(const std::vector<Tensor>& parameters, std::uint64_t step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].set_grad(
          real(file().at("seed"), 1000 + 10 * step + i, parameters[i].sizes(), -1, 1, parameters[i].dtype()));
    }
  }
};

void set(double& option, const Json& options, const char* name) { option = options.value(name, option); }
void set(bool& option, const Json& options, const char* name) { option = options.value(name, option); }

optim::SGDOptions sgd_options(optim::SGDOptions options, const Json& json) {
  set(options.lr, json, "lr");
  set(options.momentum, json, "momentum");
  set(options.dampening, json, "dampening");
  set(options.weight_decay, json, "weight_decay");
  set(options.nesterov, json, "nesterov");
  set(options.maximize, json, "maximize");
  return options;
}

template <class Options>
Options adam_options(Options options, const Json& json) {
  set(options.lr, json, "lr");
  if (json.contains("betas")) options.betas = {json.at("betas")[0], json.at("betas")[1]};
  set(options.eps, json, "eps");
  set(options.weight_decay, json, "weight_decay");
  set(options.amsgrad, json, "amsgrad");
  set(options.maximize, json, "maximize");
  return options;
}

/// The record's optimizer over two groups: the first two parameters and the others, with options of their own.
std::unique_ptr<optim::Optimizer> make(const Json& record, const std::vector<Tensor>& parameters) {
  const std::vector<Tensor> first(parameters.begin(), parameters.begin() + 2);
  const std::vector<Tensor> second(parameters.begin() + 2, parameters.end());
  const std::string name = record.at("optimizer");
  const Json& options = record.at("options");
  const Json& others = record.at("second");
  if (name == "sgd") {
    const auto shared = sgd_options({}, options);
    return std::make_unique<optim::SGD>(
        std::vector<optim::ParamGroup<optim::SGDOptions>>{{first, shared}, {second, sgd_options(shared, others)}});
  }
  if (name == "adam") {
    const auto shared = adam_options(optim::AdamOptions{}, options);
    return std::make_unique<optim::Adam>(
        std::vector<optim::ParamGroup<optim::AdamOptions>>{{first, shared}, {second, adam_options(shared, others)}});
  }
  const auto shared = adam_options(optim::AdamWOptions{}, options);
  return std::make_unique<optim::AdamW>(
      std::vector<optim::ParamGroup<optim::AdamWOptions>>{{first, shared}, {second, adam_options(shared, others)}});
}

TEST_F(Optimizers, TakeTheStepsOfPyTorch) {
  for (const Json& record : file().at("optimizers")) {
    for (const DType dtype : {DType::float64, DType::float32}) {
      SCOPED_TRACE(fmt::format("{} {} {} in {}", record.at("optimizer").get<std::string>(), record.at("options").dump(),
                               record.at("second").dump(), russet::name_of(dtype)));
      const std::vector<Tensor> made = parameters(dtype);
      const auto optimizer = make(record, made);
      for (std::size_t step = 0; step < record.at("values").size(); ++step) {
        set_gradients(made, step);
        optimizer->step();
        const Json& expected = record.at("values")[step];
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(
              difference(made[i].to_vector<double>(), numbers(expected[i]), dtype == DType::float64 ? 1e-10 : 1e-5), "")
              << "parameter " << i << " after step " << step;
        }
      }
    }
  }
}

std::shared_ptr<optim::LRScheduler> schedule_of(const std::string& name, const Json& o, optim::Optimizer& optimizer) {
  if (name == "StepLR") {
    optim::StepLROptions options{.step_size = o.at("step_size")};
    set(options.gamma, o, "gamma");
    return std::make_shared<optim::StepLR>(optimizer, options);
  }
  if (name == "MultiStepLR") {
    optim::MultiStepLROptions options{.milestones = o.at("milestones")};
    set(options.gamma, o, "gamma");
    return std::make_shared<optim::MultiStepLR>(optimizer, options);
  }
  if (name == "ExponentialLR") return std::make_shared<optim::ExponentialLR>(optimizer, o.at("gamma").get<double>());
  if (name == "CosineAnnealingLR") {
    optim::CosineAnnealingLROptions options{.T_max = o.at("T_max")};
    set(options.eta_min, o, "eta_min");
    return std::make_shared<optim::CosineAnnealingLR>(optimizer, options);
  }
  if (name == "CosineAnnealingWarmRestarts") {
    return std::make_shared<optim::CosineAnnealingWarmRestarts>(
        optimizer, optim::CosineAnnealingWarmRestartsOptions{.T_0 = o.at("T_0"), .T_mult = o.at("T_mult")});
  }
  if (name == "LinearLR") {
    optim::LinearLROptions options;
    set(options.start_factor, o, "start_factor");
    set(options.end_factor, o, "end_factor");
    options.total_iters = o.value("total_iters", options.total_iters);
    return std::make_shared<optim::LinearLR>(optimizer, options);
  }
  if (name == "ConstantLR") {
    return std::make_shared<optim::ConstantLR>(
        optimizer, optim::ConstantLROptions{.factor = o.at("factor"), .total_iters = o.at("total_iters")});
  }
  if (name == "PolynomialLR") {
    return std::make_shared<optim::PolynomialLR>(
        optimizer, optim::PolynomialLROptions{.total_iters = o.at("total_iters"), .power = o.at("power")});
  }
  if (name == "OneCycleLR") {
    optim::OneCycleLROptions options{.max_lr = o.at("max_lr"), .total_steps = o.at("total_steps")};
    set(options.pct_start, o, "pct_start");
    if (o.contains("anneal_strategy")) options.anneal_strategy = optim::Anneal::linear;
    return std::make_shared<optim::OneCycleLR>(optimizer, options);
  }
  if (name == "SequentialLR") {
    auto warmup = std::make_shared<optim::LinearLR>(
        optimizer, optim::LinearLROptions{.start_factor = o.at("start_factor"), .total_iters = o.at("warmup")});
    auto cosine =
        std::make_shared<optim::CosineAnnealingLR>(optimizer, optim::CosineAnnealingLROptions{.T_max = o.at("T_max")});
    return std::make_shared<optim::SequentialLR>(optimizer,
                                                 std::vector<std::shared_ptr<optim::LRScheduler>>{warmup, cosine},
                                                 std::vector<std::int64_t>{o.at("warmup").get<std::int64_t>()});
  }
  return nullptr;
}

TEST_F(Optimizers, SchedulesSetTheRatesOfPyTorch) {
  for (const Json& record : file().at("schedules")) {
    SCOPED_TRACE(record.at("schedule").get<std::string>() + " " + record.at("options").dump());
    const std::vector<Tensor> made = parameters(DType::float32);
    const bool one_group = record.at("rates")[0].size() == 1;
    std::vector<optim::ParamGroup<optim::SGDOptions>> groups{{{made[0], made[1]}, {.lr = 0.1}}};
    if (!one_group) groups.push_back({{made[2], made[3]}, {.lr = 0.01, .momentum = 0.5}});
    groups[0].options.momentum = 0.5;
    optim::SGD optimizer(groups);
    const auto schedule = schedule_of(record.at("schedule"), record.at("options"), optimizer);
    ASSERT_TRUE(schedule);
    for (std::size_t epoch = 0; epoch < record.at("rates").size(); ++epoch) {
      const Json& rates = record.at("rates")[epoch];
      for (std::size_t group = 0; group < rates.size(); ++group) {
        const double expected = rates[group];
        EXPECT_NEAR(optimizer.lr(group), expected, 1e-12 + 1e-9 * std::abs(expected))
            << "epoch " << epoch << ", group " << group;
      }
      schedule->step();
    }
  }
}

TEST_F(Optimizers, ClippingIsPyTorchs) {
  for (const Json& record : file().at("clips")) {
    SCOPED_TRACE(record.dump().substr(0, 60));
    const std::vector<Tensor> made = parameters(DType::float64);
    set_gradients(made, 0);
    if (record.at("clip") == "norm") {
      const Json& power = record.at("power");
      const double norm_type = power.is_string() ? std::numeric_limits<double>::infinity() : power.get<double>();
      const double total = optim::clip_grad_norm_(made, record.at("limit"), norm_type).item();
      EXPECT_NEAR(total, record.at("total").get<double>(), 1e-9);
    } else {
      optim::clip_grad_value_(made, record.at("limit"));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(difference(made[i].grad().to_vector<double>(), numbers(record.at("gradients")[i]), 1e-9), "") << i;
    }
  }
}

}  // namespace
}  // namespace golden
