// Optimizer: parameters, state and steps.
#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/movement.h>
#include <russet/optim/optimizer.h>
#include <russet/runtime.h>

#include <algorithm>

namespace russet::optim {
namespace {

void check_parameter(const char* name, const Tensor& parameter, std::span<const Tensor> seen) {
  if (!parameter.defined()) throw ValueError(fmt::format("{}: a parameter is undefined", name));
  if (!parameter.is_leaf() || !is_floating(parameter.dtype())) {
    throw ValueError(fmt::format("{}: parameters are floating leaves, not results of operators: {} of {}", name,
                                 name_of(parameter.dtype()), to_string(parameter.sizes())));
  }
  for (const Tensor& other : seen) {
    if (other.state() == parameter.state()) throw ValueError(fmt::format("{}: a parameter was given twice", name));
  }
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

/// Numbers of an update are not rounded to 16 bits.
DType wide(DType dtype) { return dtype == DType::float64 ? dtype : DType::float32; }

/// Of a tensor that is kept: the parameter's, but for single numbers.
DType state_dtype(const Shape& shape, const Tensor& parameter) {
  return shape.empty() ? wide(parameter.dtype()) : parameter.dtype();
}

/// Memory at once, not a value to be computed: the first step's plan is then that of all others.
Tensor in_memory(double value, const Shape& shape, const TensorOptions& options) {
  if (value == 0) return Tensor::cleared(shape, options);
  const auto count = static_cast<std::size_t>(numel(shape));
  if (options.dtype == DType::float64) return Tensor::from(std::vector<double>(count, value), shape, options.device);
  return Tensor::from(std::vector<float>(count, static_cast<float>(value)), shape, options.device).to(options.dtype);
}

std::string group_prefix(std::size_t group) { return fmt::format("group.{}.", group); }

}  // namespace

void require_in_range(const char* optimizer, const std::string& option, double value, Range range) {
  struct Row {
    bool holds;
    const char* wanted;
  };
  const auto row = [&]() -> Row {
    switch (range) {
      case Range::any: return {true, ""};
      case Range::at_least_zero: return {value >= 0, "0 or more"};
      case Range::at_most_zero: return {value <= 0, "0 or less"};
      case Range::at_least_one: return {value >= 1, "1 or more"};
      case Range::below_one: return {value >= 0 && value < 1, "in [0, 1)"};
      case Range::to_one: return {value >= 0 && value <= 1, "in [0, 1]"};
    }
    throw InternalError("optim: no such range");
  }();
  if (!row.holds) throw ValueError(fmt::format("{}: {} is {}, which is not {}", optimizer, option, value, row.wanted));
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> seen = all_parameters();
  GroupState made;
  for (const Tensor& parameter : parameters) {
    check_parameter(name_, parameter, seen);
    seen.push_back(parameter);
    made.states.push_back({parameter});
  }
  made.parameters = parameters;
  note_changed_setting();
  groups_.push_back(std::move(made));
}

Shape Optimizer::state_shape(std::size_t, const Tensor& parameter) const { return parameter.sizes(); }

Tensor& Optimizer::kept(ParameterState& state, std::size_t place, double start) {
  state.tensors.resize(state_names().size());
  Tensor& tensor = state.tensors.at(place);
  if (!tensor.defined()) {
    const Shape shape = state_shape(place, state.parameter);
    tensor = in_memory(start, shape, {state_dtype(shape, state.parameter), state.parameter.device()});
  }
  if (overwritten_ && std::none_of(overwritten_->begin(), overwritten_->end(),
                                   [&](const Overwritten& seen) { return seen.target.state() == tensor.state(); })) {
    overwritten_->push_back({tensor, tensor.clone()});
  }
  return tensor;
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  const Tensor loss = [&] {
    const SetGrad grad_mode(true);
    return closure();
  }();
  step();
  return loss;
}

void Optimizer::step() {
  read_skip_counts();
  update_all({});
  mark();
}

void Optimizer::step_unless(const Tensor& found_inf) {
  const NoGrad guard;
  const std::vector<Tensor> counts = skip_counts();
  update_all(found_inf);
  // After the updates, whose coefficients count this step as done: if it is skipped, nothing is made of them.
  for (const Tensor& count : counts) count.add_(ne(found_inf, 0).to(count.dtype()).to(count.device()));
  mark();
}

/// Updates every parameter that has a gradient, unless `found_inf`, if there is one, is not 0.
void Optimizer::update_all(const Tensor& found_inf) {
  const NoGrad guard;
  const Autocast full_precision(DType::bfloat16, false);
  const Tensor skip = found_inf.defined() ? ne(found_inf, 0) : Tensor();
  overwritten_.reset();  // an update that threw left them
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    coefficients_ = {};
    for (ParameterState& state : groups_[group].states) {
      const Tensor gradient = state.parameter.grad();
      if (!gradient.defined()) continue;
      count_step(state);
      if (skip.defined()) {
        update_unless(skip, group, state, gradient.detach());
      } else {
        update(group, state, gradient.detach());
      }
      note_update(state);
      in_each_call([&state] { count_step(state); }, [&state] { note_update(state); });
    }
  }
  coefficients_ = {};
}

void Optimizer::note_update(ParameterState& state) { state.pending.push_back(state.parameter.version()); }

/// Whatever update() writes goes through here: each value is the new one or the one before.
void Optimizer::update_unless(const Tensor& skip, std::size_t group, ParameterState& state, const Tensor& gradient) {
  const Tensor parameter = state.parameter.detach();
  overwritten_ = std::vector<Overwritten>{{parameter, parameter.clone()}};
  update(group, state, gradient);
  const Tensor here = skip.to(parameter.device());
  for (const Overwritten& write : *overwritten_) write.target.copy_(where(here, write.before, write.target));
  overwritten_.reset();
}

/// The counts of skipped steps of the parameters that have gradients. A parameter without one takes no part in this
/// step, and its count stays: those that shared it with this one get a copy.
std::vector<Tensor> Optimizer::skip_counts() {
  std::vector<ParameterState*> taking_part;
  std::vector<ParameterState*> idle;
  for (GroupState& group : groups_) {
    for (ParameterState& state : group.states) {
      (state.parameter.grad().defined() ? taking_part : idle).push_back(&state);
    }
  }
  struct Count {
    Tensor before;
    Tensor now;
  };
  std::vector<Count> counts;
  for (ParameterState* state : taking_part) {
    const Device device = state->parameter.device();
    auto found = std::find_if(counts.begin(), counts.end(), [&](const Count& count) {
      return count.before.state() == state->skipped.state() && count.now.device() == device;
    });
    if (found == counts.end()) {
      Tensor now = state->skipped;
      const bool shared = std::any_of(
          idle.begin(), idle.end(), [&](const ParameterState* other) { return other->skipped.state() == now.state(); });
      if (!now.defined()) {
        now = in_memory(0, {}, {DType::float32, device});
      } else if (shared) {
        now = now.clone();
      }
      found = counts.insert(counts.end(), {state->skipped, now});
    }
    state->skipped = found->now;
  }
  std::vector<Tensor> result;
  result.reserve(counts.size());
  for (const Count& count : counts) result.push_back(count.now);
  return result;
}

/// Back to counts that the host knows.
void Optimizer::read_skip_counts() {
  for (GroupState& group : groups_) {
    for (ParameterState& state : group.states) {
      if (!state.skipped.defined()) continue;
      state.steps -= state.skipped.item<std::int64_t>();
      state.skipped = {};
    }
  }
}

/// An update that failed has not happened.
std::int64_t Optimizer::steps_of(const ParameterState& state) {
  const std::uint64_t version = state.parameter.version();
  const auto undone =
      std::count_if(state.pending.begin(), state.pending.end(), [&](std::uint64_t update) { return update > version; });
  return state.steps - undone;
}

void Optimizer::count_step(ParameterState& state) {
  state.steps = steps_of(state) + 1;
  std::erase_if(state.pending, [&](std::uint64_t update) { return update > state.parameter.version(); });
  if (!state.parameter.is_pending()) state.pending.clear();
}

Tensor& Optimizer::shared_coefficient(std::size_t place, const ParameterState& state) {
  const Tensor& parameter = state.parameter;
  if (coefficients_.values.empty() || coefficients_.steps != state.steps ||
      coefficients_.skipped.state() != state.skipped.state() || coefficients_.dtype != parameter.dtype() ||
      coefficients_.device != parameter.device()) {
    coefficients_ = {state.steps, state.skipped, parameter.dtype(), parameter.device(),
                     std::vector<Tensor>(max_coefficients)};
  }
  return coefficients_.values.at(place);
}

Tensor Optimizer::steps_not_skipped(const ParameterState& state) {
  const DType dtype = wide(state.parameter.dtype());
  const Tensor steps =
      scalar_tensor(static_cast<double>(state.steps), {.dtype = dtype, .device = state.parameter.device()});
  return steps - state.skipped.to(dtype);
}

Tensor Optimizer::made_coefficient(const ParameterState& state, const std::function<double()>& value) {
  return live_number(value, {.dtype = wide(state.parameter.dtype()), .device = state.parameter.device()});
}

Tensor Optimizer::descent(const ParameterState& state, const Tensor& gradient, bool maximize, double weight_decay) {
  const Tensor direction = maximize ? -gradient : gradient;
  if (weight_decay == 0) return direction;
  return direction + state.parameter.detach() * coefficient(decay, state, [weight_decay] { return weight_decay; });
}

Tensor Optimizer::average(Tensor mean, const Tensor& value, const Tensor& share) {
  mean.copy_(mean + (value - mean) * share);
  return mean;
}

void Optimizer::zero_grad() {
  for (GroupState& group : groups_) {
    for (ParameterState& state : group.states) {
      if (state.parameter.grad().defined()) state.parameter.set_grad({});
    }
  }
}

const std::vector<Tensor>& Optimizer::parameters(std::size_t group) const {
  if (group < groups_.size()) return groups_[group].parameters;
  throw IndexError(fmt::format("{}: there is no group {} among {}", name_, group, groups_.size()));
}

std::vector<Tensor> Optimizer::all_parameters() const {
  std::vector<Tensor> all;
  for (const GroupState& group : groups_) all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  return all;
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < groups_.size(); ++group) set_lr(lr, group);
}

double Optimizer::initial_lr(std::size_t group) const {
  parameters(group);  // checks the number
  return groups_[group].initial_lr.value_or(lr(group));
}

void Optimizer::set_initial_lr(double lr, std::size_t group) {
  parameters(group);
  groups_[group].initial_lr = lr;
}

OptimizerState Optimizer::state_dict() const {
  OptimizerState dict;
  std::size_t index = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const auto& [name, value] : options(group)) dict.numbers[group_prefix(group) + name] = value;
    if (groups_[group].initial_lr) dict.numbers[group_prefix(group) + "initial_lr"] = *groups_[group].initial_lr;
    for (const ParameterState& state : groups_[group].states) {
      const double skipped = state.skipped.defined() ? state.skipped.item() : 0;
      dict.numbers[fmt::format("{}.step", index)] = static_cast<double>(steps_of(state)) - skipped;
      for (std::size_t place = 0; place < state.tensors.size(); ++place) {
        if (state.tensors[place].defined()) {
          dict.tensors.insert(fmt::format("{}.{}", index, state_names()[place]), state.tensors[place].detach());
        }
      }
      ++index;
    }
  }
  return dict;
}

void Optimizer::check_state(const OptimizerState& dict) const {
  std::vector<std::string> missing, misshaped, unexpected;
  std::map<std::string, Shape> wanted;
  std::map<std::string, double> numbers;
  std::size_t index = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const auto& [name, value] : options(group)) numbers[group_prefix(group) + name] = value;
    for (const ParameterState& state : groups_[group].states) {
      numbers[fmt::format("{}.step", index)] = 0;
      for (std::size_t place = 0; place < state_names().size(); ++place) {
        wanted[fmt::format("{}.{}", index, state_names()[place])] = state_shape(place, state.parameter);
      }
      ++index;
    }
  }
  for (const auto& [name, value] : numbers) {
    if (!dict.numbers.contains(name)) missing.push_back(name);
  }
  for (const auto& [name, value] : dict.numbers) {
    if (!numbers.contains(name) && !name.ends_with(".initial_lr")) unexpected.push_back(name);
  }
  for (const auto& [name, tensor] : dict.tensors) {
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      unexpected.push_back(name);
    } else if (tensor.sizes() != found->second) {
      misshaped.push_back(
          fmt::format("{} ({} in the state, {} wanted)", name, to_string(tensor.sizes()), to_string(found->second)));
    }
  }
  std::string message;
  if (!missing.empty()) message += "\n  missing: " + listed(missing);
  if (!unexpected.empty()) message += "\n  unexpected: " + listed(unexpected);
  if (!misshaped.empty()) message += "\n  of another shape: " + listed(misshaped);
  if (!message.empty()) throw ValueError(fmt::format("{}: the state does not fit the optimizer:{}", name_, message));
}

void Optimizer::load_state_dict(const OptimizerState& dict) {
  check_state(dict);
  note_changed_setting();  // tensors take the places of others
  const NoGrad guard;
  std::size_t index = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::map<std::string, double> own;
    const std::string prefix = group_prefix(group);
    for (const auto& [name, value] : dict.numbers) {
      if (name.starts_with(prefix)) own[name.substr(prefix.size())] = value;
    }
    const auto initial = own.find("initial_lr");
    groups_[group].initial_lr = initial == own.end() ? std::nullopt : std::optional<double>(initial->second);
    set_options(group, own);
    for (ParameterState& state : groups_[group].states) {
      state.steps = static_cast<std::int64_t>(dict.numbers.at(fmt::format("{}.step", index)));
      state.skipped = {};
      state.pending.clear();
      state.tensors.resize(state_names().size());
      for (std::size_t place = 0; place < state_names().size(); ++place) {
        const Tensor* saved = dict.tensors.find(fmt::format("{}.{}", index, state_names()[place]));
        state.tensors[place] = {};
        if (saved == nullptr) continue;
        const DType dtype = state_dtype(saved->sizes(), state.parameter);
        state.tensors[place] = saved->detach().to(dtype).to(state.parameter.device()).clone();
      }
      ++index;
    }
  }
  flush();
}

}  // namespace russet::optim
