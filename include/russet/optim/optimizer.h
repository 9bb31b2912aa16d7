#pragma once
// Optimizer: what all optimizers do. Learning rates and the like are run-time arguments of the recorded work: changing
// them compiles nothing.
#include <russet/io/state_dict.h>
#include <russet/tensor.h>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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
  void step();
  /// The same after `closure`, run in grad mode, has computed the loss and its gradients anew; returns the loss.
  Tensor step(const std::function<Tensor()>& closure);
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
  /// SGD's momentum, Adam's first beta.
  virtual double momentum(std::size_t group = 0) const = 0;
  virtual void set_momentum(double momentum, std::size_t group) = 0;
  /// The rate that schedules start from: lr() until a schedule changed that.
  double initial_lr(std::size_t group = 0) const;
  void set_initial_lr(double lr, std::size_t group);

  /// State of the parameters and options of the groups.
  OptimizerState state_dict() const;
  /// Throws one ValueError that names everything missing, unexpected or of another shape; nothing is changed then.
  void load_state_dict(const OptimizerState& dict);

 protected:
  /// What is kept for a parameter: tensors in the order of state_names(), undefined until its first update.
  struct ParameterState {
    Tensor parameter;
    std::vector<Tensor> tensors;
    std::int64_t steps = 0;
    /// The parameter's versions after updates that had not been computed when last seen; ascending.
    std::vector<std::uint64_t> pending{};
  };
  struct GroupState {
    std::vector<Tensor> parameters;
    std::vector<ParameterState> states;
    std::optional<double> initial_lr{};
  };

  /// Throws ValueError for no parameters, one given twice, or one that is no floating leaf.
  Optimizer(const char* name, std::vector<std::string> state_names, std::vector<std::vector<Tensor>> groups);
  /// Whether the group keeps state tensor `place` of state_names.
  virtual bool keeps(std::size_t group, std::size_t place) const = 0;
  /// The new value of a parameter; state.steps counts this update already, state.tensors are there.
  virtual void update(std::size_t group, ParameterState& state, const Tensor& gradient) = 0;
  /// Options as numbers, for state_dict().
  virtual std::map<std::string, double> options(std::size_t group) const = 0;
  virtual void set_options(std::size_t group, const std::map<std::string, double>& numbers) = 0;

  static constexpr std::size_t max_coefficients = 8;
  /// Number `place` (below max_coefficients) of this update, as a tensor of no axes which parameters of one group, type
  /// and count of steps share.
  const Tensor& coefficient(std::size_t place, const ParameterState& state, double value);

 private:
  struct Coefficients {
    std::int64_t steps = 0;
    DType dtype = DType::float32;
    Device device{};
    std::vector<Tensor> values;
  };
  void prepare(std::size_t group, ParameterState& state);
  static std::int64_t steps_of(const ParameterState& state);
  static void count_step(ParameterState& state);
  void check_state(const OptimizerState& dict) const;

  const char* name_;
  std::vector<std::string> state_names_;
  std::vector<GroupState> groups_;
  Coefficients coefficients_;
};

/// Parameters with options of their own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> parameters;
  Options options;
};

}  // namespace russet::optim
