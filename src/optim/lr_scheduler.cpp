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

void require_share(const char* schedule, const char* option, double value) {
  if (value >= 0 && value <= 1) return;
  throw ValueError(fmt::format("{}: {} is {}, which is not in [0, 1]", schedule, option, value));
}

using Factors = std::vector<std::function<double(std::int64_t)>>;

Factors for_groups(const char* schedule, const Optimizer& optimizer, Factors factors) {
  if (factors.size() == optimizer.num_groups()) return factors;
  throw ValueError(fmt::format("{}: {} functions for {} groups", schedule, factors.size(), optimizer.num_groups()));
}

double factor_of(const Factors& factors, std::size_t group, std::int64_t epoch) {
  if (group < factors.size()) return factors[group](epoch);
  throw ValueError(fmt::format("LRScheduler: {} functions and none for group {}", factors.size(), group));
}

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) { note_rates(0); }

void LRScheduler::note_rates(double epoch) {
  epoch_ = epoch;
  last_lr_.clear();
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
    optimizer_.set_initial_lr(optimizer_.initial_lr(group), group);
    last_lr_.push_back(optimizer_.lr(group));
  }
}

std::int64_t LRScheduler::last_epoch() const { return static_cast<std::int64_t>(std::floor(epoch_)); }

void LRScheduler::step() { move_to(epoch_ + 1, false, 1); }

void LRScheduler::go_to(double epoch) { move_to(epoch, true, 1); }

void LRScheduler::begin() { move_to(0, true, 0); }

void LRScheduler::restart() {
  step_count_ = 0;
  move_to(0, false, 1);
}

void LRScheduler::move_to(double epoch, bool closed_form, std::int64_t steps) {
  note_rates(epoch_);  // groups may have been added
  const double before = std::exchange(epoch_, epoch);
  step_count_ += steps;
  std::vector<double> rates;
  std::vector<std::optional<double>> momenta;
  try {
    for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
      const std::optional<double> closed = closed_form ? get_closed_form_lr(group) : std::nullopt;
      rates.push_back(closed ? *closed : get_lr(group));
      momenta.push_back(get_momentum(group));
    }
  } catch (...) {
    epoch_ = before;
    step_count_ -= steps;
    throw;
  }
  for (std::size_t group = 0; group < rates.size(); ++group) {
    optimizer_.set_lr(rates[group], group);
    if (momenta[group]) optimizer_.set_momentum(*momenta[group], group);
  }
  last_lr_ = rates;
}

std::optional<double> LRScheduler::get_closed_form_lr(std::size_t) const { return {}; }

std::optional<double> LRScheduler::get_momentum(std::size_t) const { return {}; }

OptimizerState LRScheduler::state_dict() const {
  OptimizerState state;
  state.numbers["last_epoch"] = epoch_;
  state.numbers["step_count"] = static_cast<double>(step_count_);
  for (std::size_t group = 0; group < last_lr_.size(); ++group) {
    state.numbers[fmt::format("lr.{}", group)] = last_lr_[group];
  }
  return state;
}

double LRScheduler::number_in(const OptimizerState& state, const std::string& name) {
  const auto found = state.numbers.find(name);
  if (found == state.numbers.end()) throw ValueError(fmt::format("LRScheduler: the state has no {}", name));
  return found->second;
}

void LRScheduler::load_state_dict(const OptimizerState& state) {
  const double epoch = number_in(state, "last_epoch");
  const double steps = number_in(state, "step_count");
  std::vector<double> rates;
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
    rates.push_back(number_in(state, fmt::format("lr.{}", group)));
  }
  epoch_ = epoch;
  step_count_ = static_cast<std::int64_t>(steps);
  for (std::size_t group = 0; group < rates.size(); ++group) {
    optimizer_.set_lr(rates[group], group);
    if (const std::optional<double> momentum = get_momentum(group)) optimizer_.set_momentum(*momentum, group);
  }
  last_lr_ = rates;
}

void PerGroup::check(const char* schedule, const char* option, const Optimizer& optimizer) const {
  if (values_.size() == 1 || values_.size() == optimizer.num_groups()) return;
  throw ValueError(
      fmt::format("{}: {} has {} values for {} groups", schedule, option, values_.size(), optimizer.num_groups()));
}

double PerGroup::operator[](std::size_t group) const {
  if (values_.size() == 1) return values_[0];
  if (group < values_.size()) return values_[group];
  throw ValueError(fmt::format("LRScheduler: {} values and no one for group {}", values_.size(), group));
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options) : LRScheduler(optimizer), options_(options) {
  require_positive("StepLR", "step_size", options.step_size);
  start();
}

double StepLR::get_lr(std::size_t group) const {
  const bool falls = last_epoch() != 0 && last_epoch() % options_.step_size == 0;
  return optimizer().lr(group) * (falls ? options_.gamma : 1);
}

std::optional<double> StepLR::get_closed_form_lr(std::size_t group) const {
  return base_lr(group) * std::pow(options_.gamma, std::floor(epoch() / static_cast<double>(options_.step_size)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  start();
}

double MultiStepLR::get_lr(std::size_t group) const {
  const auto times = std::count(options_.milestones.begin(), options_.milestones.end(), last_epoch());
  return optimizer().lr(group) * std::pow(options_.gamma, static_cast<double>(times));
}

std::optional<double> MultiStepLR::get_closed_form_lr(std::size_t group) const {
  const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                    [&](std::int64_t milestone) { return milestone <= last_epoch(); });
  return base_lr(group) * std::pow(options_.gamma, static_cast<double>(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  require_share("ConstantLR", "factor", options.factor);
  start();
}

double ConstantLR::get_lr(std::size_t group) const {
  const double lr = optimizer().lr(group);
  if (last_epoch() == 0) return lr * options_.factor;
  if (last_epoch() != options_.total_iters) return lr;
  return options_.factor == 0 ? base_lr(group) : lr / options_.factor;
}

std::optional<double> ConstantLR::get_closed_form_lr(std::size_t group) const {
  return base_lr(group) * (last_epoch() < options_.total_iters ? options_.factor : 1);
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options) : LRScheduler(optimizer), options_(options) {
  require_positive("LinearLR", "total_iters", options.total_iters);
  require_share("LinearLR", "start_factor", options.start_factor);
  require_share("LinearLR", "end_factor", options.end_factor);
  if (options.start_factor == 0) throw ValueError("LinearLR: start_factor is 0: it must be above");
  start();
}

double LinearLR::get_lr(std::size_t group) const {
  const double lr = optimizer().lr(group);
  if (last_epoch() == 0) return lr * options_.start_factor;
  if (last_epoch() > options_.total_iters) return lr;
  const double change = options_.end_factor - options_.start_factor;
  const double before = static_cast<double>(options_.total_iters) * options_.start_factor + (epoch() - 1) * change;
  return lr * (1 + change / before);
}

std::optional<double> LinearLR::get_closed_form_lr(std::size_t group) const {
  const auto total = static_cast<double>(options_.total_iters);
  const double change = options_.end_factor - options_.start_factor;
  return base_lr(group) * (options_.start_factor + change * std::min(epoch(), total) / total);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  require_positive("PolynomialLR", "total_iters", options.total_iters);
  start();
}

double PolynomialLR::get_lr(std::size_t group) const {
  const double lr = optimizer().lr(group);
  const auto total = static_cast<double>(options_.total_iters);
  if (is_initial() || last_epoch() > options_.total_iters) return lr;
  return lr * std::pow((1 - epoch() / total) / (1 - (epoch() - 1) / total), options_.power);
}

std::optional<double> PolynomialLR::get_closed_form_lr(std::size_t group) const {
  const auto total = static_cast<double>(options_.total_iters);
  return base_lr(group) * std::pow(1 - std::min(epoch(), total) / total, options_.power);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { start(); }

double ExponentialLR::get_lr(std::size_t group) const { return optimizer().lr(group) * (is_initial() ? 1 : gamma_); }

std::optional<double> ExponentialLR::get_closed_form_lr(std::size_t group) const {
  return base_lr(group) * std::pow(gamma_, epoch());
}

LambdaLR::LambdaLR(Optimizer& optimizer, Factor lr_lambda)
    : LambdaLR(optimizer, std::vector<Factor>(optimizer.num_groups(), std::move(lr_lambda))) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> lr_lambda)
    : LRScheduler(optimizer), factors_(for_groups("LambdaLR", optimizer, std::move(lr_lambda))) {
  start();
}

double LambdaLR::get_lr(std::size_t group) const { return base_lr(group) * factor_of(factors_, group, last_epoch()); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Factor lr_lambda)
    : MultiplicativeLR(optimizer, std::vector<Factor>(optimizer.num_groups(), std::move(lr_lambda))) {}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Factor> lr_lambda)
    : LRScheduler(optimizer), factors_(for_groups("MultiplicativeLR", optimizer, std::move(lr_lambda))) {
  start();
}

double MultiplicativeLR::get_lr(std::size_t group) const {
  return optimizer().lr(group) * (is_initial() ? 1 : factor_of(factors_, group, last_epoch()));
}

}  // namespace russet::optim
