// Schedules of schedules, and the one that follows a metric.
#include <fmt/format.h>
#include <russet/optim/lr_scheduler.h>

#include <algorithm>
#include <limits>

namespace russet::optim {
namespace {

using Schedules = std::vector<std::shared_ptr<LRScheduler>>;

void check_schedules(const char* name, const Schedules& schedules, const Optimizer& optimizer) {
  for (const std::shared_ptr<LRScheduler>& schedule : schedules) {
    if (&schedule->optimizer() != &optimizer) {
      throw ValueError(fmt::format("{}: a schedule is of another optimizer", name));
    }
    if (dynamic_cast<const ReduceLROnPlateau*>(schedule.get()) != nullptr) {
      throw ValueError(fmt::format("{}: ReduceLROnPlateau needs a metric at each step", name));
    }
  }
}

void save(const Schedules& schedules, OptimizerState& state) {
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    for (const auto& [name, number] : schedules[i]->state_dict().numbers) {
      state.numbers[fmt::format("{}.{}", i, name)] = number;
    }
  }
}

OptimizerState state_below(const OptimizerState& state, std::size_t place) {
  const std::string prefix = fmt::format("{}.", place);
  OptimizerState own;
  for (const auto& [name, number] : state.numbers) {
    if (name.starts_with(prefix)) own.numbers[name.substr(prefix.size())] = number;
  }
  return own;
}

/// Schedule `last` at the end: what it sets holds.
void load(const Schedules& schedules, const OptimizerState& state, std::size_t last) {
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (i != last) schedules[i]->load_state_dict(state_below(state, i));
  }
  schedules[last]->load_state_dict(state_below(state, last));
}

Optimizer& optimizer_of(const Schedules& schedules) {
  if (schedules.empty()) throw ValueError("ChainedScheduler: there is no schedule");
  return schedules[0]->optimizer();
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedules schedules, std::vector<std::int64_t> milestones)
    : LRScheduler(optimizer), schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  if (schedules_.empty() || milestones_.size() + 1 != schedules_.size()) {
    throw ValueError(
        fmt::format("SequentialLR: {} schedules and {} milestones", schedules_.size(), milestones_.size()));
  }
  check_schedules("SequentialLR", schedules_, optimizer);
  SequentialLR::restart();
}

void SequentialLR::restart() {
  // What making the other schedules did to the rates is undone.
  for (std::size_t group = 0; group < optimizer().num_groups(); ++group) optimizer().set_lr(base_lr(group), group);
  schedules_[0]->restart();
  note_rates(0);
}

void SequentialLR::begin() { restart(); }

std::size_t SequentialLR::active(double epoch) const {
  std::size_t place = 0;
  while (place < milestones_.size() && epoch >= static_cast<double>(milestones_[place])) ++place;
  return place;
}

double SequentialLR::begin_of(std::size_t place) const {
  return place == 0 ? 0 : static_cast<double>(milestones_[place - 1]);
}

void SequentialLR::step() {
  const double next = epoch() + 1;
  const std::size_t place = active(next);
  if (place > 0 && next == begin_of(place)) {
    schedules_[place]->begin();
  } else {
    schedules_[place]->step();
  }
  note_rates(next);
}

void SequentialLR::go_to(double epoch) {
  const std::size_t place = active(epoch);
  schedules_[place]->go_to(epoch - begin_of(place));
  note_rates(epoch);
}

double SequentialLR::get_lr(std::size_t group) const { return optimizer().lr(group); }

OptimizerState SequentialLR::state_dict() const {
  OptimizerState state = LRScheduler::state_dict();
  save(schedules_, state);
  return state;
}

void SequentialLR::load_state_dict(const OptimizerState& state) {
  load(schedules_, state, active(number_in(state, "last_epoch")));
  LRScheduler::load_state_dict(state);
}

ChainedScheduler::ChainedScheduler(Schedules schedules)
    : LRScheduler(optimizer_of(schedules)), schedules_(std::move(schedules)) {
  check_schedules("ChainedScheduler", schedules_, optimizer());
}

void ChainedScheduler::restart() {
  for (const std::shared_ptr<LRScheduler>& schedule : schedules_) schedule->restart();
  note_rates(0);
}

void ChainedScheduler::begin() {
  for (const std::shared_ptr<LRScheduler>& schedule : schedules_) schedule->begin();
  note_rates(0);
}

void ChainedScheduler::step() {
  for (const std::shared_ptr<LRScheduler>& schedule : schedules_) schedule->step();
  note_rates(epoch() + 1);
}

void ChainedScheduler::go_to(double epoch) {
  for (const std::shared_ptr<LRScheduler>& schedule : schedules_) schedule->go_to(epoch);
  note_rates(epoch);
}

double ChainedScheduler::get_lr(std::size_t group) const { return optimizer().lr(group); }

OptimizerState ChainedScheduler::state_dict() const {
  OptimizerState state = LRScheduler::state_dict();
  save(schedules_, state);
  return state;
}

void ChainedScheduler::load_state_dict(const OptimizerState& state) {
  load(schedules_, state, schedules_.size() - 1);
  LRScheduler::load_state_dict(state);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (!(options.factor < 1))
    throw ValueError(fmt::format("ReduceLROnPlateau: factor is {}, not below 1", options.factor));
  options.min_lr.check("ReduceLROnPlateau", "min_lr", optimizer);
}

void ReduceLROnPlateau::step() { throw ValueError("ReduceLROnPlateau: step takes the metric"); }

void ReduceLROnPlateau::go_to(double) { throw ValueError("ReduceLROnPlateau: a metric alone moves it, by step"); }

double ReduceLROnPlateau::get_lr(std::size_t group) const { return optimizer().lr(group); }

bool ReduceLROnPlateau::is_better(double metrics) const {
  // The first metric is better than none, unless it is infinite or NaN.
  const double worst = std::numeric_limits<double>::infinity();
  const bool relative = options_.threshold_mode == ThresholdMode::rel;
  if (options_.mode == PlateauMode::min) {
    const double best = best_.value_or(worst);
    return metrics < (relative ? best * (1 - options_.threshold) : best - options_.threshold);
  }
  const double best = best_.value_or(-worst);
  return metrics > (relative ? best * (1 + options_.threshold) : best + options_.threshold);
}

void ReduceLROnPlateau::step(double metrics) {
  const bool better = is_better(metrics);
  if (better) best_ = metrics;
  num_bad_epochs_ = better ? 0 : num_bad_epochs_ + 1;
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    for (std::size_t group = 0; group < optimizer().num_groups(); ++group) {
      const double lr = optimizer().lr(group);
      const double reduced = std::max(lr * options_.factor, options_.min_lr[group]);
      if (lr - reduced > options_.eps) optimizer().set_lr(reduced, group);
    }
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  note_rates(epoch() + 1);
}

OptimizerState ReduceLROnPlateau::state_dict() const {
  OptimizerState state = LRScheduler::state_dict();
  if (best_) state.numbers["best"] = *best_;
  state.numbers["num_bad_epochs"] = static_cast<double>(num_bad_epochs_);
  state.numbers["cooldown_counter"] = static_cast<double>(cooldown_counter_);
  return state;
}

void ReduceLROnPlateau::load_state_dict(const OptimizerState& state) {
  const double bad_epochs = number_in(state, "num_bad_epochs");
  const double counter = number_in(state, "cooldown_counter");
  LRScheduler::load_state_dict(state);
  const auto best = state.numbers.find("best");
  best_ = best == state.numbers.end() ? std::nullopt : std::optional<double>(best->second);
  num_bad_epochs_ = static_cast<std::int64_t>(bad_epochs);
  cooldown_counter_ = static_cast<std::int64_t>(counter);
}

}  // namespace russet::optim
