// What all schedules do, and the schedules that are a factor.
#include <fmt/format.h>
#include <russet/optim/lr_scheduler.h>

#include <algorithm>
#include <cmath>

namespace russet::optim {
namespace {

void require_positive(const char* schedule, const char* option, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{}: {} is {}, which is not 1 or more", schedule, option, value));
}

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (std::size_t group = 0; group < optimizer.num_groups(); ++group) {
    optimizer.set_initial_lr(optimizer.initial_lr(group), group);
  }
}

void LRScheduler::step() { go_to(epoch_ + 1); }

void LRScheduler::go_to(std::int64_t epoch) {
  std::vector<double> rates;
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
    rates.push_back(rate(group, optimizer_.initial_lr(group), epoch));
  }
  const std::optional<double> inertia = momentum(epoch);
  epoch_ = epoch;
  for (std::size_t group = 0; group < rates.size(); ++group) {
    optimizer_.set_lr(rates[group], group);
    if (inertia) optimizer_.set_momentum(*inertia, group);
  }
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) rates.push_back(optimizer_.lr(group));
  return rates;
}

std::optional<double> LRScheduler::momentum(std::int64_t) const { return {}; }

OptimizerState LRScheduler::state_dict() const {
  OptimizerState state;
  state.numbers["last_epoch"] = static_cast<double>(epoch_);
  return state;
}

void LRScheduler::load_state_dict(const OptimizerState& state) {
  const auto found = state.numbers.find("last_epoch");
  if (found == state.numbers.end()) throw ValueError("LRScheduler: the state has no last_epoch");
  go_to(static_cast<std::int64_t>(found->second));
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options) : LRScheduler(optimizer), options_(options) {
  require_positive("StepLR", "step_size", options.step_size);
  start();
}

double StepLR::rate(std::size_t, double base, std::int64_t epoch) const {
  return base * std::pow(options_.gamma, static_cast<double>(epoch / options_.step_size));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  start();
}

double MultiStepLR::rate(std::size_t, double base, std::int64_t epoch) const {
  const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                    [&](std::int64_t milestone) { return milestone <= epoch; });
  return base * std::pow(options_.gamma, static_cast<double>(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  start();
}

double ConstantLR::rate(std::size_t, double base, std::int64_t epoch) const {
  return epoch < options_.total_iters ? base * options_.factor : base;
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options) : LRScheduler(optimizer), options_(options) {
  require_positive("LinearLR", "total_iters", options.total_iters);
  start();
}

double LinearLR::rate(std::size_t, double base, std::int64_t epoch) const {
  const double part =
      static_cast<double>(std::min(epoch, options_.total_iters)) / static_cast<double>(options_.total_iters);
  return base * (options_.start_factor + (options_.end_factor - options_.start_factor) * part);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  require_positive("PolynomialLR", "total_iters", options.total_iters);
  start();
}

double PolynomialLR::rate(std::size_t, double base, std::int64_t epoch) const {
  const double part =
      static_cast<double>(std::min(epoch, options_.total_iters)) / static_cast<double>(options_.total_iters);
  return base * std::pow(1 - part, options_.power);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { start(); }

double ExponentialLR::rate(std::size_t, double base, std::int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Factor factor)
    : LambdaLR(optimizer, std::vector<Factor>(optimizer.num_groups(), std::move(factor))) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : LRScheduler(optimizer), factors_(std::move(factors)) {
  if (factors_.size() != optimizer.num_groups()) {
    throw ValueError(fmt::format("LambdaLR: {} functions for {} groups", factors_.size(), optimizer.num_groups()));
  }
  start();
}

double LambdaLR::rate(std::size_t group, double base, std::int64_t epoch) const {
  return base * factors_.at(group)(epoch);
}

}  // namespace russet::optim
