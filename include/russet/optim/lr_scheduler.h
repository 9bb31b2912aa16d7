#pragma once
// Learning-rate schedules. A schedule sets the rates of its optimizer when it is made and at each step(); names,
// numbers and the ways in which schedules combine are those of torch.optim.lr_scheduler.
#include <russet/optim/optimizer.h>
#include <functional>
#include <initializer_list>
#include <memory>

namespace russet::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Goes on by one (an epoch, or a step of the optimizer, as the caller means it) and sets the rates. Most schedules
  /// start from the rates that are set: several of one optimizer multiply, and a rate set by hand stays in force.
  virtual void step();
  /// Goes to a place, which may be part of an epoch, and sets the rates, in closed form where there is one.
  virtual void go_to(double epoch);
  std::int64_t last_epoch() const;
  /// The rates that the last step set, a group each.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  Optimizer& optimizer() const { return optimizer_; }

  virtual OptimizerState state_dict() const;
  /// Sets the rates, too. Throws ValueError for a state that lacks a number.
  virtual void load_state_dict(const OptimizerState& state);

 protected:
  /// Keeps the optimizer's rates as its initial ones, if no schedule did so before. The optimizer must live as long.
  explicit LRScheduler(Optimizer& optimizer);
  /// Constructors of schedules end with it: the rates of epoch 0.
  void start() { restart(); }

  /// The rate of a group at this epoch, told from base_lr() or from the rate that is set, optimizer().lr(group).
  virtual double get_lr(std::size_t group) const = 0;
  /// The same from base_lr() alone, for go_to().
  virtual std::optional<double> get_closed_form_lr(std::size_t group) const;
  /// The momentum of a group at this epoch, if the schedule sets it.
  virtual std::optional<double> get_momentum(std::size_t group) const;

  double epoch() const { return epoch_; }
  /// The rate that a group started with.
  double base_lr(std::size_t group) const { return optimizer_.initial_lr(group); }
  /// How often the rates were set; once, by the constructor, where is_initial().
  std::int64_t step_count() const { return step_count_; }
  bool is_initial() const { return step_count_ == 1; }

  /// A state's number; throws ValueError if it is not there.
  static double number_in(const OptimizerState& state, const std::string& name);
  /// Notes rates that were set otherwise.
  void note_rates(double epoch);

 private:
  friend class ChainedScheduler;
  friend class SequentialLR;
  /// As made anew, on the rates that are set.
  virtual void restart();
  /// The start of its part of a sequence: epoch 0 in closed form, which is_initial() and step_count() do not count.
  virtual void begin();
  void move_to(double epoch, bool closed_form, std::int64_t steps);

  Optimizer& optimizer_;
  double epoch_ = 0;
  std::int64_t step_count_ = 0;
  std::vector<double> last_lr_;
};

/// A number for all groups, or one for each.
class PerGroup {
 public:
  PerGroup(double value) : values_{value} {}
  PerGroup(std::initializer_list<double> values) : values_(values) {}
  PerGroup(std::vector<double> values) : values_(std::move(values)) {}
  /// Throws ValueError for a group that came later and has none.
  double operator[](std::size_t group) const;
  /// Throws ValueError unless there is one number, or one for each group.
  void check(const char* schedule, const char* option, const Optimizer& optimizer) const;

 private:
  std::vector<double> values_;
};

struct StepLROptions {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};
/// Times gamma every step_size epochs.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

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

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

 private:
  MultiStepLROptions options_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  std::int64_t total_iters = 5;
};
/// Times factor until total_iters. Throws ValueError for a factor outside of [0, 1].
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

 private:
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};
/// Times a factor that goes from start to end in a straight line. Throws ValueError for a start outside of (0, 1] and
/// an end outside of [0, 1].
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

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

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

 private:
  PolynomialLROptions options_;
};

/// Times gamma every epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

 private:
  double gamma_;
};

/// The base rate times f(epoch): one function, or one a group.
class LambdaLR : public LRScheduler {
 public:
  using Factor = std::function<double(std::int64_t)>;
  LambdaLR(Optimizer& optimizer, Factor lr_lambda);
  LambdaLR(Optimizer& optimizer, std::vector<Factor> lr_lambda);

 protected:
  double get_lr(std::size_t group) const override;

 private:
  std::vector<Factor> factors_;
};

/// Times f(epoch) at each epoch from 1 on: one function, or one a group.
class MultiplicativeLR : public LRScheduler {
 public:
  using Factor = std::function<double(std::int64_t)>;
  MultiplicativeLR(Optimizer& optimizer, Factor lr_lambda);
  MultiplicativeLR(Optimizer& optimizer, std::vector<Factor> lr_lambda);

 protected:
  double get_lr(std::size_t group) const override;

 private:
  std::vector<Factor> factors_;
};

struct CosineAnnealingLROptions {
  std::int64_t T_max = 1;
  double eta_min = 0;
};
/// Half a cosine from the base rate to eta_min in T_max epochs (and back).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_closed_form_lr(std::size_t group) const override;

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

 protected:
  double get_lr(std::size_t group) const override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
};

enum class CyclicMode : std::uint8_t { triangular, triangular2, exp_range };
enum class ScaleMode : std::uint8_t { cycle, iterations };
struct CyclicLROptions {
  PerGroup base_lr = 0;
  PerGroup max_lr = 0;
  std::int64_t step_size_up = 2000;
  /// As step_size_up if absent.
  std::optional<std::int64_t> step_size_down{};
  CyclicMode mode = CyclicMode::triangular;
  double gamma = 1;
  /// Replaces `mode`: of the number of the cycle, or of the epoch, by scale_mode.
  std::function<double(double)> scale_fn{};
  ScaleMode scale_mode = ScaleMode::cycle;
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.8;
  PerGroup max_momentum = 0.9;
};
/// From base_lr to max_lr and back in straight lines, the peaks scaled by mode: as they are, halved each cycle, times
/// gamma^epoch. Momentum goes the other way. Smith 2017.
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const CyclicLROptions& options);

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_momentum(std::size_t group) const override;

 private:
  /// The part of the way up, times the scale.
  double height() const;
  CyclicLROptions options_;
};

enum class Anneal : std::uint8_t { cos, linear };
struct OneCycleLROptions {
  PerGroup max_lr = 0;
  std::optional<std::int64_t> total_steps{};
  std::optional<std::int64_t> epochs{};
  std::optional<std::int64_t> steps_per_epoch{};
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up to max_lr and down again, momentum the other way. Throws ValueError beyond total_steps, which may be given as
/// epochs and steps_per_epoch. Smith, Topin 2017.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 protected:
  double get_lr(std::size_t group) const override;
  std::optional<double> get_momentum(std::size_t group) const override;

 private:
  enum class Level : std::uint8_t { initial, top, least };
  struct Phase {
    double end;
    Level from, to;
  };
  double rate_of(Level level, std::size_t group) const;
  double anneal(double from, double to, double part) const;
  /// The phase that the epoch is in, and the part of it that is over.
  std::pair<Phase, double> phase() const;
  double total_steps_ = 0;
  std::vector<Phase> phases_;
  OneCycleLROptions options_;
};

/// Schedules one after another: schedule i + 1 starts, from its beginning, at milestones[i].
class SequentialLR : public LRScheduler {
 public:
  /// Throws ValueError unless there is one milestone less than schedules, which are of `optimizer`.
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedules,
               std::vector<std::int64_t> milestones);
  void step() override;
  void go_to(double epoch) override;
  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state) override;

 protected:
  double get_lr(std::size_t group) const override;

 private:
  void restart() override;
  void begin() override;
  /// The place of the schedule of an epoch, and the epoch at which it starts.
  std::size_t active(double epoch) const;
  double begin_of(std::size_t place) const;
  std::vector<std::shared_ptr<LRScheduler>> schedules_;
  std::vector<std::int64_t> milestones_;
};

/// Schedules that take each step together, one after another.
class ChainedScheduler : public LRScheduler {
 public:
  /// Throws ValueError unless there is a schedule and all are of one optimizer.
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedules);
  void step() override;
  void go_to(double epoch) override;
  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state) override;

 protected:
  double get_lr(std::size_t group) const override;

 private:
  void restart() override;
  void begin() override;
  std::vector<std::shared_ptr<LRScheduler>> schedules_;
};

enum class PlateauMode : std::uint8_t { min, max };
enum class ThresholdMode : std::uint8_t { rel, abs };
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::rel;
  std::int64_t cooldown = 0;
  PerGroup min_lr = 0;
  double eps = 1e-8;
};
/// Times factor when a metric has not become better for more than `patience` epochs.
class ReduceLROnPlateau : public LRScheduler {
 public:
  /// Throws ValueError for a factor of 1 or more.
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metrics);
  /// These throw ValueError: a step needs the metric.
  void step() override;
  void go_to(double epoch) override;
  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state) override;

 protected:
  double get_lr(std::size_t group) const override;

 private:
  bool is_better(double metrics) const;
  ReduceLROnPlateauOptions options_;
  std::optional<double> best_{};
  std::int64_t num_bad_epochs_ = 0;
  std::int64_t cooldown_counter_ = 0;
};

}  // namespace russet::optim
