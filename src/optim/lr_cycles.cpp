// Schedules that follow a cosine or a cycle, and schedules of schedules.
#include <fmt/format.h>
#include <russet/optim/lr_scheduler.h>

#include <cmath>
#include <numbers>

namespace russet::optim {
namespace {

/// From `from` to `to` along half a cosine, `part` in [0, 1] of the way.
double cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (options.T_max < 1) throw ValueError(fmt::format("CosineAnnealingLR: T_max is {}", options.T_max));
  start();
}

double CosineAnnealingLR::rate(std::size_t, double base, std::int64_t epoch) const {
  return cosine(base, options_.eta_min, static_cast<double>(epoch) / static_cast<double>(options_.T_max));
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (options.T_0 < 1 || options.T_mult < 1) {
    throw ValueError(fmt::format("CosineAnnealingWarmRestarts: T_0 is {}, T_mult {}", options.T_0, options.T_mult));
  }
  start();
}

double CosineAnnealingWarmRestarts::rate(std::size_t, double base, std::int64_t epoch) const {
  std::int64_t length = options_.T_0;
  std::int64_t place = options_.T_mult == 1 ? epoch % length : epoch;
  while (place >= length) {
    place -= length;
    length *= options_.T_mult;
  }
  return cosine(base, options_.eta_min, static_cast<double>(place) / static_cast<double>(length));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (options.total_steps < 1) throw ValueError(fmt::format("OneCycleLR: total_steps is {}", options.total_steps));
  if (!(options.max_lr > 0)) throw ValueError(fmt::format("OneCycleLR: max_lr is {}", options.max_lr));
  if (!(options.pct_start >= 0 && options.pct_start <= 1)) {
    throw ValueError(fmt::format("OneCycleLR: pct_start is {}, which is not in [0, 1]", options.pct_start));
  }
  const auto total = static_cast<double>(options.total_steps);
  const double first = options.max_lr / options.div_factor;
  const double last = first / options.final_div_factor;
  const double high = options.max_momentum;
  const double low = options.base_momentum;
  const double top = options.pct_start * total - 1;
  phases_.push_back({top, first, options.max_lr, high, low});
  if (options.three_phase) {
    phases_.push_back({2 * options.pct_start * total - 2, options.max_lr, first, low, high});
    phases_.push_back({total - 1, first, last, high, high});
  } else {
    phases_.push_back({total - 1, options.max_lr, last, low, high});
  }
  start();
}

double OneCycleLR::anneal(double from, double to, double part) const {
  return options_.anneal_strategy == Anneal::cos ? cosine(from, to, part) : from + (to - from) * part;
}

std::pair<const OneCycleLR::Phase*, double> OneCycleLR::phase_at(std::int64_t epoch) const {
  if (epoch > options_.total_steps) {
    throw ValueError(fmt::format("OneCycleLR: step {} is beyond total_steps, {}", epoch, options_.total_steps));
  }
  const auto step = static_cast<double>(epoch);
  double begin = 0;
  for (const Phase& phase : phases_) {
    if (step <= phase.end || &phase == &phases_.back()) return {&phase, (step - begin) / (phase.end - begin)};
    begin = phase.end;
  }
  throw InternalError("OneCycleLR: no phase");
}

double OneCycleLR::rate(std::size_t, double, std::int64_t epoch) const {
  const auto [phase, part] = phase_at(epoch);
  return anneal(phase->lr_from, phase->lr_to, part);
}

std::optional<double> OneCycleLR::momentum(std::int64_t epoch) const {
  if (!options_.cycle_momentum) return {};
  const auto [phase, part] = phase_at(epoch);
  return anneal(phase->momentum_from, phase->momentum_to, part);
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedules,
                           std::vector<std::int64_t> milestones)
    : LRScheduler(optimizer), schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  if (schedules_.empty() || milestones_.size() + 1 != schedules_.size()) {
    throw ValueError(
        fmt::format("SequentialLR: {} schedules and {} milestones", schedules_.size(), milestones_.size()));
  }
  start();
}

std::pair<const LRScheduler*, std::int64_t> SequentialLR::active(std::int64_t epoch) const {
  std::size_t place = 0;
  while (place < milestones_.size() && epoch >= milestones_[place]) ++place;
  return {schedules_[place].get(), place == 0 ? epoch : epoch - milestones_[place - 1]};
}

double SequentialLR::rate(std::size_t group, double base, std::int64_t epoch) const {
  const auto [schedule, place] = active(epoch);
  return schedule->rate(group, base, place);
}

std::optional<double> SequentialLR::momentum(std::int64_t epoch) const {
  const auto [schedule, place] = active(epoch);
  return schedule->momentum(place);
}

}  // namespace russet::optim
