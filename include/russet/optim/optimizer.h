#pragma once
// Optimizer: what all optimizers do. Learning rates and the like are run-time arguments of the recorded work: changing
// them compiles nothing.
#include <russet/captured_function.h>
#include <russet/io/state_dict.h>
#include <russet/optim/options.h>
#include <russet/tensor.h>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace russet::optim {

/// All that an optimizer or a schedule needs to go on bit for bit: tensors ("0.momentum_buffer": of parameter 0) and
/// numbers ("0.step", "group.0.lr").
struct OptimizerState {
  StateDict tensors;
  std::map<std::string, double> numbers;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient, in place and outside the tape, and flushes.
  virtual void step();
  /// The same after `closure`, run in grad mode, has computed the loss and its gradients anew; returns the loss.
  virtual Tensor step(const std::function<Tensor()>& closure);
  /// As step(), unless `found_inf` (a tensor of no axes) is not 0: parameters, state and counts of steps then stay as
  /// they are. The device decides; nothing is read.
  virtual void step_unless(const Tensor& found_inf);
  /// Drops the gradients.
  void zero_grad();

  std::size_t num_groups() const { return groups_.size(); }
  /// The parameters of a group. Throws IndexError.
  const std::vector<Tensor>& parameters(std::size_t group = 0) const;
  /// The parameters of all groups.
  std::vector<Tensor> all_parameters() const;

  virtual double lr(std::size_t group = 0) const = 0;
  virtual void set_lr(double lr, std::size_t group) = 0;
  /// Of all groups.
  void set_lr(double lr);
  /// The option `momentum`, or the first of `betas`; nothing where there is neither.
  virtual std::optional<double> momentum(std::size_t group = 0) const = 0;
  /// Throws ValueError where momentum() is nothing.
  virtual void set_momentum(double momentum, std::size_t group) = 0;
  /// The rate that schedules start from: lr() until a schedule changed that.
  double initial_lr(std::size_t group = 0) const;
  void set_initial_lr(double lr, std::size_t group);

  /// State of the parameters and options of the groups.
  virtual OptimizerState state_dict() const;
  /// Throws one ValueError that names everything missing, unexpected or of another shape; nothing is changed then.
  virtual void load_state_dict(const OptimizerState& dict);

 protected:
  /// What is kept for a parameter: tensors in the order of state_names(), undefined until kept() makes them.
  struct ParameterState {
    Tensor parameter;
    std::vector<Tensor> tensors{};
    std::int64_t steps = 0;
    /// How many of `steps` were skipped; shared by parameters that took part in the same ones. Undefined: none.
    Tensor skipped{};
    /// The parameter's versions after updates that had not been computed when last seen; ascending.
    std::vector<std::uint64_t> pending{};
  };
  struct GroupState {
    std::vector<Tensor> parameters;
    std::vector<ParameterState> states;
    std::optional<double> initial_lr{};
  };

  explicit Optimizer(const char* name) : name_(name) {}
  /// Throws ValueError for a parameter that was given before, or that is no floating leaf; nothing is added then.
  void add_parameters(const std::vector<Tensor>& parameters);
  const char* name() const { return name_; }

  /// What the tensors that are kept for a parameter are called.
  virtual std::span<const char* const> state_names() const = 0;
  /// The shape of tensor `place` of state_names().
  virtual Shape state_shape(std::size_t place, const Tensor& parameter) const;
  /// Writes the new value of a parameter, and what is kept for it. How many updates there were is known to
  /// coefficient_of_steps() alone.
  virtual void update(std::size_t group, ParameterState& state, const Tensor& gradient) = 0;
  /// Options as numbers, for state_dict().
  virtual std::map<std::string, double> options(std::size_t group) const = 0;
  virtual void set_options(std::size_t group, const std::map<std::string, double>& numbers) = 0;

  // For update():

  /// Tensor `place` of state_names(), filled with `start` at first.
  Tensor& kept(ParameterState& state, std::size_t place, double start = 0);
  /// Places of coefficients that many optimizers have; an optimizer's own start at `own`.
  enum Coefficient : std::size_t { rate, decay, own };
  static constexpr std::size_t max_coefficients = 12;
  /// Number `place` (below max_coefficients) of this update, as a tensor of no axes which parameters of one group, type
  /// and count of steps share. `value` gives it, and is asked again in calls of a captured function that are not
  /// recorded: it refers to options and `state`, not to what update() has on its stack.
  template <class Value>
  const Tensor& coefficient(std::size_t place, const ParameterState& state, const Value& value) {
    Tensor& shared = shared_coefficient(place, state);
    if (!shared.defined()) shared = made_coefficient(state, value);
    return shared;
  }
  /// The same for a number that depends on how many updates there were, this one included: `function` takes that as a
  /// double, or, where updates may be skipped, as a tensor of no axes (optim/steps.h).
  template <class Function>
  const Tensor& coefficient_of_steps(std::size_t place, const ParameterState& state, const Function& function) {
    if (!state.skipped.defined()) {
      return coefficient(place, state, [&state, function] { return function(static_cast<double>(state.steps)); });
    }
    Tensor& shared = shared_coefficient(place, state);
    if (!shared.defined()) shared = function(steps_not_skipped(state));
    return shared;
  }
  /// The gradient of what is minimised: -gradient to maximise, and weight_decay p added.
  Tensor descent(const ParameterState& state, const Tensor& gradient, bool maximize, double weight_decay);
  /// Writes the average with `mean`, of which the new value makes up `share`, and returns it.
  static Tensor average(Tensor mean, const Tensor& value, const Tensor& share);

 private:
  struct Coefficients {
    std::int64_t steps = 0;
    Tensor skipped{};
    DType dtype = DType::float32;
    Device device{};
    std::vector<Tensor> values;
  };
  /// A value that an update overwrites.
  struct Overwritten {
    Tensor target;
    Tensor before;
  };
  static std::int64_t steps_of(const ParameterState& state);
  static void count_step(ParameterState& state);
  static void note_update(ParameterState& state);
  void update_all(const Tensor& found_inf);
  void update_unless(const Tensor& skip, std::size_t group, ParameterState& state, const Tensor& gradient);
  std::vector<Tensor> skip_counts();
  void read_skip_counts();
  Tensor& shared_coefficient(std::size_t place, const ParameterState& state);
  static Tensor made_coefficient(const ParameterState& state, const std::function<double()>& value);
  static Tensor steps_not_skipped(const ParameterState& state);
  void check_state(const OptimizerState& dict) const;

  const char* name_;
  std::vector<GroupState> groups_;
  Coefficients coefficients_;
  std::optional<std::vector<Overwritten>> overwritten_;  // by the update under way, if it may be skipped
};

/// Parameters with options of their own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> parameters;
  Options options;
};

/// An optimizer with options of this type. Options::check(parameters), if there is one, says what ranges cannot.
template <class Options>
class OptimizerOf : public Optimizer {
 public:
  /// Throws ValueError for options out of range, no parameters, one given twice, or one that is no floating leaf.
  explicit OptimizerOf(std::vector<Tensor> parameters, const Options& options = {})
      : OptimizerOf(std::vector<ParamGroup<Options>>{{std::move(parameters), options}}) {}
  explicit OptimizerOf(const std::vector<ParamGroup<Options>>& groups) : Optimizer(Options::optimizer) {
    for (const ParamGroup<Options>& group : groups) add_param_group(group);
    if (all_parameters().empty()) throw ValueError(std::string(Options::optimizer) + ": there are no parameters");
  }

  /// More parameters to update from now on. Throws as the constructor; nothing is changed then.
  void add_param_group(const ParamGroup<Options>& group) {
    check(group.options, group.parameters);
    add_parameters(group.parameters);
    options_.push_back(group.options);
    if (options_.size() == 1) defaults_ = group.options;
  }
  /// With the options that the first group was made with.
  void add_param_group(std::vector<Tensor> parameters) {
    add_param_group(ParamGroup<Options>{std::move(parameters), defaults_});
  }
  const Options& group_options(std::size_t group = 0) const { return options_.at(group); }

  using Optimizer::set_lr;
  double lr(std::size_t group = 0) const override { return options_.at(group).lr; }
  void set_lr(double lr, std::size_t group) override { options_.at(group).lr = lr; }
  std::optional<double> momentum(std::size_t group = 0) const override {
    if constexpr (has_momentum) return momentum_of(options_.at(group));
    return {};
  }
  void set_momentum(double momentum, std::size_t group) override {
    if constexpr (has_momentum) {
      set(momentum_of(options_.at(group)), momentum);
    } else {
      throw ValueError(std::string(Options::optimizer) + ": there is no momentum to set");
    }
  }

 protected:
  std::map<std::string, double> options(std::size_t group) const override {
    std::map<std::string, double> numbers;
    Options copy = options_[group];
    each_option(copy, [&](const std::string& name, double number, bool) { numbers[name] = number; });
    return numbers;
  }
  void set_options(std::size_t group, const std::map<std::string, double>& numbers) override {
    each_option(options_[group], [&](const std::string& name, double& number, bool) { set(number, numbers.at(name)); });
  }

 private:
  static void set(double& option, double value) {
    if (std::exchange(option, value) != value) note_changed_setting();
  }
  static constexpr bool has_momentum = requires(Options o) { o.momentum; }
  || requires(Options o) { o.betas; };
  template <class Any>
  static auto& momentum_of(Any& options) {
    if constexpr (requires { options.momentum; }) {
      return options.momentum;
    } else {
      return options.betas.first;
    }
  }
  template <class Visit>
  static void each_option(Options& options, const Visit& visit) {
    Options::each(options,
                  [&](const char* name, auto& option, Range = Range::any) { each_number(name, option, visit); });
  }
  static void check(const Options& options, const std::vector<Tensor>& parameters) {
    check_ranges(options);
    if constexpr (requires { options.check(parameters); }) options.check(parameters);
  }

  std::vector<Options> options_;
  Options defaults_;
};

}  // namespace russet::optim
