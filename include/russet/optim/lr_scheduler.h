#pragma once
// Learning-rate schedules. A schedule sets the rates of its optimizer when it is made and at each step(); names and
// numbers are those of torch.optim.lr_scheduler, in closed form.
#include <russet/optim/optimizer.h>
#include <functional>
#include <memory>
#include <span>

namespace russet::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Goes on by one (an epoch, or a step of the optimizer, as the caller means it) and sets the rates.
  void step();
  /// Goes to a place and sets the rates.
  void go_to(std::int64_t epoch);
  std::int64_t last_epoch() const { return epoch_; }
  /// The rates that are set, a group each.
  std::vector<double> get_last_lr() const;

  OptimizerState state_dict() const;
  void load_state_dict(const OptimizerState& state);

  /// The rate of a group at a place. `base`: the optimizer's initial_lr().
  virtual double rate(std::size_t group, double base, std::int64_t epoch) const = 0;
  /// The momentum of a group at a place, if the schedule sets it.
  virtual std::optional<double> momentum(std::int64_t epoch) const;

 protected:
  /// Keeps the optimizer's rates as its initial ones, if no schedule did so before. The optimizer must live as long.
  explicit LRScheduler(Optimizer& optimizer);
  /// Constructors of schedules end with it.
  void start() { go_to(0); }
  Optimizer& optimizer() const { return optimizer_; }

 private:
  Optimizer& optimizer_;
  std::int64_t epoch_ = 0;
};

struct StepLROptions {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};
/// Times gamma every step_size epochs.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<std::int64_t> milestones;
  double gamma = 0.1;
};
/// Times gamma at each milestone.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  MultiStepLROptions options_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  std::int64_t total_iters = 5;
};
/// Times factor until total_iters.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};
/// Times a factor that goes from start to end in a straight line.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  LinearLROptions options_;
};

struct PolynomialLROptions {
  std::int64_t total_iters = 5;
  double power = 1;
};
/// Times (1 - epoch / total_iters)^power, 0 from total_iters on.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {});
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  PolynomialLROptions options_;
};

/// Times gamma every epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  double gamma_;
};

struct CosineAnnealingLROptions {
  std::int64_t T_max = 1;
  double eta_min = 0;
};
/// Half a cosine from the base rate to eta_min in T_max epochs (and back).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  CosineAnnealingLROptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  std::int64_t T_0 = 1;
  std::int64_t T_mult = 1;
  double eta_min = 0;
};
/// Half a cosine in T_0 epochs, then again from the base rate, each time T_mult as long.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
};

/// Times f(epoch): one function, or one a group.
class LambdaLR : public LRScheduler {
 public:
  using Factor = std::function<double(std::int64_t)>;
  LambdaLR(Optimizer& optimizer, Factor factor);
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;

 private:
  std::vector<Factor> factors_;
};

enum class Anneal : std::uint8_t { cos, linear };
struct OneCycleLROptions {
  double max_lr = 0;
  std::int64_t total_steps = 0;
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up to max_lr and down again, momentum the other way. Throws ValueError beyond total_steps. Smith, Topin 2017.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;
  std::optional<double> momentum(std::int64_t epoch) const override;

 private:
  struct Phase {
    double end;
    double lr_from, lr_to;
    double momentum_from, momentum_to;
  };
  double anneal(double from, double to, double part) const;
  std::pair<const Phase*, double> phase_at(std::int64_t epoch) const;
  OneCycleLROptions options_;
  std::vector<Phase> phases_;
};

/// Schedules one after another: schedule i + 1 starts, from its beginning, at milestones[i].
class SequentialLR : public LRScheduler {
 public:
  /// Throws ValueError unless there is one milestone less than schedules.
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedules,
               std::vector<std::int64_t> milestones);
  double rate(std::size_t group, double base, std::int64_t epoch) const override;
  std::optional<double> momentum(std::int64_t epoch) const override;

 private:
  std::pair<const LRScheduler*, std::int64_t> active(std::int64_t epoch) const;
  std::vector<std::shared_ptr<LRScheduler>> schedules_;
  std::vector<std::int64_t> milestones_;
};

}  // namespace russet::optim
