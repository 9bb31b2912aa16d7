// Schedules that follow a cosine or a cycle.
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

void require_momentum(const char* schedule, const Optimizer& optimizer) {
  if (optimizer.momentum()) return;
  throw ValueError(fmt::format("{}: cycle_momentum wants an optimizer with momentum or betas", schedule));
}

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (options.T_max < 1) throw ValueError(fmt::format("CosineAnnealingLR: T_max is {}", options.T_max));
  start();
}

double CosineAnnealingLR::get_lr(std::size_t group) const {
  const double lr = optimizer().lr(group);
  if (is_initial()) return lr;
  const auto half = static_cast<double>(options_.T_max);
  const double rising = 1 - std::cos(std::numbers::pi / half);
  // At the bottom the factor from step to step is not defined.
  const bool was_at_bottom = (last_epoch() - 1 - options_.T_max) % (2 * options_.T_max) == 0;
  if (was_at_bottom) return lr + (base_lr(group) - options_.eta_min) * rising / 2;
  const double now = 1 + std::cos(std::numbers::pi * epoch() / half);
  const double before = 1 + std::cos(std::numbers::pi * (epoch() - 1) / half);
  return now / before * (lr - options_.eta_min) + options_.eta_min;
}

std::optional<double> CosineAnnealingLR::get_closed_form_lr(std::size_t group) const {
  return cosine(base_lr(group), options_.eta_min, epoch() / static_cast<double>(options_.T_max));
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& options)
    : LRScheduler(optimizer), options_(options) {
  if (options.T_0 < 1 || options.T_mult < 1) {
    throw ValueError(fmt::format("CosineAnnealingWarmRestarts: T_0 is {}, T_mult {}", options.T_0, options.T_mult));
  }
  start();
}

double CosineAnnealingWarmRestarts::get_lr(std::size_t group) const {
  if (epoch() < 0) throw ValueError(fmt::format("CosineAnnealingWarmRestarts: epoch {} is below 0", epoch()));
  auto length = static_cast<double>(options_.T_0);
  double place = options_.T_mult == 1 ? std::fmod(epoch(), length) : epoch();
  while (place >= length) {
    place -= length;
    length *= static_cast<double>(options_.T_mult);
  }
  return cosine(base_lr(group), options_.eta_min, place / length);
}

CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicLROptions& options) : LRScheduler(optimizer), options_(options) {
  if (options.step_size_up < 1 || options.step_size_down.value_or(1) < 1) {
    throw ValueError(fmt::format("CyclicLR: step_size_up is {}, step_size_down {}", options.step_size_up,
                                 options.step_size_down.value_or(options.step_size_up)));
  }
  options.base_lr.check("CyclicLR", "base_lr", optimizer);
  options.max_lr.check("CyclicLR", "max_lr", optimizer);
  if (options.cycle_momentum) {
    require_momentum("CyclicLR", optimizer);
    options.base_momentum.check("CyclicLR", "base_momentum", optimizer);
    options.max_momentum.check("CyclicLR", "max_momentum", optimizer);
  }
  start();
}

double CyclicLR::height() const {
  const auto up = static_cast<double>(options_.step_size_up);
  const auto down = static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
  const double cycle = std::floor(1 + epoch() / (up + down));
  const double place = 1 + epoch() / (up + down) - cycle;
  const double ratio = up / (up + down);
  const double part = place <= ratio ? place / ratio : (place - 1) / (ratio - 1);
  if (options_.scale_fn) return part * options_.scale_fn(options_.scale_mode == ScaleMode::cycle ? cycle : epoch());
  if (options_.mode == CyclicMode::triangular2) return part / std::pow(2, cycle - 1);
  if (options_.mode == CyclicMode::exp_range) return part * std::pow(options_.gamma, epoch());
  return part;
}

double CyclicLR::get_lr(std::size_t group) const {
  const double base = options_.base_lr[group];
  return base + (options_.max_lr[group] - base) * height();
}

std::optional<double> CyclicLR::get_momentum(std::size_t group) const {
  if (!options_.cycle_momentum) return {};
  const double most = options_.max_momentum[group];
  return most - (most - options_.base_momentum[group]) * height();
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  const std::int64_t total =
      options.total_steps.value_or(options.epochs.value_or(0) * options.steps_per_epoch.value_or(0));
  if (total < 1) {
    throw ValueError(
        fmt::format("OneCycleLR: {} steps in all: total_steps, or epochs and steps_per_epoch, say how many", total));
  }
  if (!(options.pct_start >= 0 && options.pct_start <= 1)) {
    throw ValueError(fmt::format("OneCycleLR: pct_start is {}, which is not in [0, 1]", options.pct_start));
  }
  options.max_lr.check("OneCycleLR", "max_lr", optimizer);
  for (std::size_t group = 0; group < optimizer.num_groups(); ++group) {
    if (!(options.max_lr[group] > 0)) throw ValueError(fmt::format("OneCycleLR: max_lr is {}", options.max_lr[group]));
    optimizer.set_initial_lr(options.max_lr[group] / options.div_factor, group);
  }
  if (options.cycle_momentum) {
    require_momentum("OneCycleLR", optimizer);
    options.base_momentum.check("OneCycleLR", "base_momentum", optimizer);
    options.max_momentum.check("OneCycleLR", "max_momentum", optimizer);
  }
  total_steps_ = static_cast<double>(total);
  phases_.push_back({options.pct_start * total_steps_ - 1, Level::initial, Level::top});
  if (options.three_phase) {
    phases_.push_back({2 * options.pct_start * total_steps_ - 2, Level::top, Level::initial});
    phases_.push_back({total_steps_ - 1, Level::initial, Level::least});
  } else {
    phases_.push_back({total_steps_ - 1, Level::top, Level::least});
  }
  start();
}

double OneCycleLR::anneal(double from, double to, double part) const {
  return options_.anneal_strategy == Anneal::cos ? cosine(from, to, part) : from + (to - from) * part;
}

std::pair<OneCycleLR::Phase, double> OneCycleLR::phase() const {
  if (epoch() > total_steps_) {
    throw ValueError(fmt::format("OneCycleLR: step {} is beyond total_steps, {}", epoch(), total_steps_));
  }
  double begin = 0;
  for (const Phase& phase : phases_) {
    if (epoch() <= phase.end || &phase == &phases_.back()) return {phase, (epoch() - begin) / (phase.end - begin)};
    begin = phase.end;
  }
  throw InternalError("OneCycleLR: no phase");
}

double OneCycleLR::rate_of(Level level, std::size_t group) const {
  const double top = options_.max_lr[group];
  if (level == Level::top) return top;
  return level == Level::initial ? top / options_.div_factor : top / options_.div_factor / options_.final_div_factor;
}

double OneCycleLR::get_lr(std::size_t group) const {
  const auto [now, part] = phase();
  return anneal(rate_of(now.from, group), rate_of(now.to, group), part);
}

std::optional<double> OneCycleLR::get_momentum(std::size_t group) const {
  if (!options_.cycle_momentum) return {};
  const double low = options_.base_momentum[group];
  const double high = options_.max_momentum[group];
  const auto [now, part] = phase();
  // Low at the top; the last phase of two goes from there, the last of three stays.
  return anneal(now.from == Level::top ? low : high, now.to == Level::top ? low : high, part);
}

}  // namespace russet::optim
