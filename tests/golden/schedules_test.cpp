// Learning-rate schedules against PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/optim.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::Tensor;
namespace optim = russet::optim;
using Schedule = std::shared_ptr<optim::LRScheduler>;

const Json& file() {
  static const Json json = read_json("optimizers.json.gz");
  return json;
}

/// Options of a record, each asked for once by its name.
class Options {
 public:
  explicit Options(const Json& given) : given_(given) {}
  template <class T>
  void set(const char* name, T& option) const {
    if (given_.contains(name)) option = given_.at(name).get<T>();
  }
  template <class T>
  void set(const char* name, std::optional<T>& option) const {
    if (given_.contains(name)) option = given_.at(name).get<T>();
  }
  void set(const char* name, optim::PerGroup& option) const {
    if (!given_.contains(name)) return;
    const Json& value = given_.at(name);
    option = value.is_array() ? optim::PerGroup(value.get<std::vector<double>>()) : value.get<double>();
  }
  /// The place of a word among `words`.
  template <class Enum>
  requires std::is_enum_v<Enum>
  void set(const char* name, Enum& option, const std::vector<std::string>& words) const {
    if (!given_.contains(name)) return;
    const auto found = std::find(words.begin(), words.end(), given_.at(name).get<std::string>());
    ASSERT_NE(found, words.end());
    option = static_cast<Enum>(found - words.begin());
  }
  const Json& at(const char* name) const { return given_.at(name); }
  bool has(const char* name) const { return given_.contains(name); }

 private:
  const Json& given_;
};

double inverse(double epoch) { return 1 / (1 + epoch / 4); }
double alternating(double epoch) { return std::fmod(epoch, 2) == 1 ? 0.8 : 1.1; }
std::function<double(double)> function_of(const std::string& word) { return word == "inverse" ? inverse : alternating; }

template <class Made>
Schedule by_functions(const Json& words, optim::Optimizer& optimizer) {
  if (words.is_string()) return std::make_shared<Made>(optimizer, function_of(words));
  std::vector<typename Made::Factor> factors;
  for (const Json& word : words) factors.push_back(function_of(word));
  return std::make_shared<Made>(optimizer, factors);
}

Schedule cyclic(const Options& o, optim::Optimizer& optimizer) {
  optim::CyclicLROptions options;
  o.set("base_lr", options.base_lr);
  o.set("max_lr", options.max_lr);
  o.set("step_size_up", options.step_size_up);
  o.set("step_size_down", options.step_size_down);
  o.set("mode", options.mode, {"triangular", "triangular2", "exp_range"});
  o.set("gamma", options.gamma);
  if (o.has("scale_fn")) options.scale_fn = function_of(o.at("scale_fn"));
  o.set("scale_mode", options.scale_mode, {"cycle", "iterations"});
  o.set("cycle_momentum", options.cycle_momentum);
  o.set("base_momentum", options.base_momentum);
  return std::make_shared<optim::CyclicLR>(optimizer, options);
}

Schedule one_cycle(const Options& o, optim::Optimizer& optimizer) {
  optim::OneCycleLROptions options;
  o.set("max_lr", options.max_lr);
  o.set("total_steps", options.total_steps);
  o.set("epochs", options.epochs);
  o.set("steps_per_epoch", options.steps_per_epoch);
  o.set("pct_start", options.pct_start);
  o.set("anneal_strategy", options.anneal_strategy, {"cos", "linear"});
  o.set("base_momentum", options.base_momentum);
  o.set("max_momentum", options.max_momentum);
  o.set("div_factor", options.div_factor);
  o.set("three_phase", options.three_phase);
  return std::make_shared<optim::OneCycleLR>(optimizer, options);
}

Schedule plateau(const Options& o, optim::Optimizer& optimizer) {
  optim::ReduceLROnPlateauOptions options;
  o.set("mode", options.mode, {"min", "max"});
  o.set("factor", options.factor);
  o.set("patience", options.patience);
  o.set("threshold", options.threshold);
  o.set("threshold_mode", options.threshold_mode, {"rel", "abs"});
  o.set("cooldown", options.cooldown);
  o.set("min_lr", options.min_lr);
  return std::make_shared<optim::ReduceLROnPlateau>(optimizer, options);
}

Schedule schedule_of(const std::string& name, const Json& given, optim::Optimizer& optimizer);

std::vector<Schedule> schedules_in(const Json& list, optim::Optimizer& optimizer) {
  std::vector<Schedule> made;
  for (const Json& inner : list) made.push_back(schedule_of(inner.at(0), inner.at(1), optimizer));
  return made;
}

/// A schedule whose options are set by `set`.
template <class Made, class Its>
Schedule with(optim::Optimizer& optimizer, const std::function<void(Its&)>& set) {
  Its options;
  set(options);
  return std::make_shared<Made>(optimizer, options);
}

Schedule schedule_of(const std::string& name, const Json& given, optim::Optimizer& optimizer) {
  const Options o(given);
  if (name == "StepLR") {
    return with<optim::StepLR, optim::StepLROptions>(optimizer, [&](auto& options) {
      o.set("step_size", options.step_size);
      o.set("gamma", options.gamma);
    });
  }
  if (name == "MultiStepLR") {
    return with<optim::MultiStepLR, optim::MultiStepLROptions>(optimizer, [&](auto& options) {
      o.set("milestones", options.milestones);
      o.set("gamma", options.gamma);
    });
  }
  if (name == "ExponentialLR") return std::make_shared<optim::ExponentialLR>(optimizer, o.at("gamma").get<double>());
  if (name == "CosineAnnealingLR") {
    return with<optim::CosineAnnealingLR, optim::CosineAnnealingLROptions>(optimizer, [&](auto& options) {
      o.set("T_max", options.T_max);
      o.set("eta_min", options.eta_min);
    });
  }
  if (name == "CosineAnnealingWarmRestarts") {
    return with<optim::CosineAnnealingWarmRestarts, optim::CosineAnnealingWarmRestartsOptions>(
        optimizer, [&](auto& options) {
          o.set("T_0", options.T_0);
          o.set("T_mult", options.T_mult);
          o.set("eta_min", options.eta_min);
        });
  }
  if (name == "LinearLR") {
    return with<optim::LinearLR, optim::LinearLROptions>(optimizer, [&](auto& options) {
      o.set("start_factor", options.start_factor);
      o.set("end_factor", options.end_factor);
      o.set("total_iters", options.total_iters);
    });
  }
  if (name == "ConstantLR") {
    return with<optim::ConstantLR, optim::ConstantLROptions>(optimizer, [&](auto& options) {
      o.set("factor", options.factor);
      o.set("total_iters", options.total_iters);
    });
  }
  if (name == "PolynomialLR") {
    return with<optim::PolynomialLR, optim::PolynomialLROptions>(optimizer, [&](auto& options) {
      o.set("total_iters", options.total_iters);
      o.set("power", options.power);
    });
  }
  if (name == "SWALR") {
    return with<optim::SWALR, optim::SWALROptions>(optimizer, [&](auto& options) {
      o.set("swa_lr", options.swa_lr);
      o.set("anneal_epochs", options.anneal_epochs);
      o.set("anneal_strategy", options.anneal_strategy, {"cos", "linear"});
    });
  }
  if (name == "LambdaLR") return by_functions<optim::LambdaLR>(o.at("lr_lambda"), optimizer);
  if (name == "MultiplicativeLR") return by_functions<optim::MultiplicativeLR>(o.at("lr_lambda"), optimizer);
  if (name == "CyclicLR") return cyclic(o, optimizer);
  if (name == "OneCycleLR") return one_cycle(o, optimizer);
  if (name == "ReduceLROnPlateau") return plateau(o, optimizer);
  if (name == "ChainedScheduler") {
    return std::make_shared<optim::ChainedScheduler>(schedules_in(o.at("schedules"), optimizer));
  }
  if (name == "SequentialLR") {
    return std::make_shared<optim::SequentialLR>(optimizer, schedules_in(o.at("schedules"), optimizer),
                                                 o.at("milestones").get<std::vector<std::int64_t>>());
  }
  return nullptr;
}

std::unique_ptr<optim::Optimizer> optimizer_of(const std::string& kind) {
  const auto one = [] { return Tensor::from<float>({0}, {1}, {}, true); };
  if (kind == "adam") {
    return std::make_unique<optim::Adam>(
        std::vector<optim::ParamGroup<optim::AdamOptions>>{{{one()}, {.lr = 0.1}}, {{one()}, {.lr = 0.01}}});
  }
  return std::make_unique<optim::SGD>(std::vector<optim::ParamGroup<optim::SGDOptions>>{
      {{one()}, {.lr = 0.1, .momentum = 0.5}}, {{one()}, {.lr = 0.01, .momentum = 0.5}}});
}

void expect_rates(const optim::Optimizer& optimizer, const Json& rates, std::size_t epoch) {
  for (std::size_t group = 0; group < rates.size(); ++group) {
    const double expected = rates[group];
    EXPECT_NEAR(optimizer.lr(group), expected, 1e-12 + 1e-9 * std::abs(expected))
        << "epoch " << epoch << ", group " << group;
  }
}

void expect_momenta(const optim::Optimizer& optimizer, const Json& momenta, std::size_t epoch) {
  for (std::size_t group = 0; group < momenta.size(); ++group) {
    EXPECT_NEAR(*optimizer.momentum(group), momenta[group].get<double>(), 1e-12) << epoch << ", group " << group;
  }
}

void step(optim::LRScheduler& schedule, const Json& record, std::size_t epoch) {
  auto* by_metric = dynamic_cast<optim::ReduceLROnPlateau*>(&schedule);
  if (by_metric == nullptr) return schedule.step();
  by_metric->step(record.at("metrics")[epoch].get<double>());
}

void set_by_hand(optim::Optimizer& optimizer, const Json& record, std::size_t epoch) {
  for (const Json& change : record.at("by_hand")) {
    if (change.at(0) == epoch) optimizer.set_lr(change.at(1), 0);
  }
}

TEST(Schedules, SetTheRatesOfPyTorch) {
  for (const Json& record : file().at("schedules")) {
    SCOPED_TRACE(record.at("schedule").get<std::string>() + " " + record.at("options").dump());
    const auto optimizer = optimizer_of(record.at("optimizer"));
    const Schedule schedule = schedule_of(record.at("schedule"), record.at("options"), *optimizer);
    ASSERT_TRUE(schedule);
    for (std::size_t epoch = 0; epoch < record.at("rates").size(); ++epoch) {
      set_by_hand(*optimizer, record, epoch);
      expect_rates(*optimizer, record.at("rates")[epoch], epoch);
      expect_momenta(*optimizer, record.at("momenta")[epoch], epoch);
      EXPECT_EQ(schedule->last_epoch(), static_cast<std::int64_t>(epoch));
      step(*schedule, record, epoch);
      EXPECT_EQ(schedule->get_last_lr(), (std::vector<double>{optimizer->lr(0), optimizer->lr(1)}));
    }
  }
}

TEST(Schedules, GoToAnEpochAsPyTorchDoes) {
  for (const Json& record : file().at("jumps")) {
    SCOPED_TRACE(record.at("schedule").get<std::string>() + " " + record.at("options").dump());
    const auto optimizer = optimizer_of("sgd");
    const Schedule schedule = schedule_of(record.at("schedule"), record.at("options"), *optimizer);
    for (std::size_t i = 0; i < record.at("epochs").size(); ++i) {
      schedule->go_to(record.at("epochs")[i].get<double>());
      expect_rates(*optimizer, record.at("rates")[i], i);
    }
  }
}

/// A schedule that was saved and loaded in the middle goes on with the same bits.
TEST(Schedules, Resume) {
  for (const Json& record : file().at("schedules")) {
    SCOPED_TRACE(record.at("schedule").get<std::string>() + " " + record.at("options").dump());
    const auto rates_of = [&](std::size_t pause) {
      auto optimizer = optimizer_of(record.at("optimizer"));
      Schedule schedule = schedule_of(record.at("schedule"), record.at("options"), *optimizer);
      std::vector<double> rates;
      for (std::size_t epoch = 0; epoch < record.at("rates").size(); ++epoch) {
        if (epoch == pause) {
          const optim::OptimizerState saved = schedule->state_dict();
          const optim::OptimizerState of_optimizer = optimizer->state_dict();
          schedule.reset();
          optimizer = optimizer_of(record.at("optimizer"));
          schedule = schedule_of(record.at("schedule"), record.at("options"), *optimizer);
          optimizer->load_state_dict(of_optimizer);
          schedule->load_state_dict(saved);
        }
        set_by_hand(*optimizer, record, epoch);
        for (const std::size_t group : {0, 1}) {
          rates.push_back(optimizer->lr(group));
          rates.push_back(*optimizer->momentum(group));
        }
        step(*schedule, record, epoch);
      }
      return rates;
    };
    const std::vector<double> whole = rates_of(1000);
    for (const std::size_t pause : {1, 7, 21}) EXPECT_EQ(rates_of(pause), whole) << pause;
  }
}

}  // namespace
}  // namespace golden
