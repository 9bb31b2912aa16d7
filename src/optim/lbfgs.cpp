// L-BFGS.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/optim/lbfgs.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cmath>

#include "line_search.h"

namespace russet::optim {
namespace {

/// The line search gives up where no element of a parameter moves by more.
constexpr double least_change = 1e-9;
/// The least curvature along a step that the history takes.
constexpr double least_curvature = 1e-10;

const std::string prefix = "lbfgs.";

/// Zeros for parameters without a gradient.
Tensor flat_gradient(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    parts.push_back(gradient.defined() ? flatten(gradient.detach()) : flatten(zeros_like(parameter.detach())));
  }
  return cat(parts);
}

void move(const std::vector<Tensor>& parameters, double t, const Tensor& d) {
  std::int64_t offset = 0;
  for (Tensor parameter : parameters) {
    parameter.add_(reshape(narrow(d, 0, offset, parameter.numel()), parameter.sizes()) * t);
    offset += parameter.numel();
  }
}

Tensor inner(const Tensor& a, const Tensor& b) { return sum(a * b); }

double largest(const Tensor& x) { return amax(abs(x)).item(); }

std::int64_t size_of_all(const std::vector<Tensor>& parameters) {
  std::int64_t size = 0;
  for (const Tensor& parameter : parameters) size += parameter.numel();
  return size;
}

}  // namespace

void LBFGS::step() { throw ValueError("LBFGS: step takes a closure that computes the loss and its gradients"); }

void LBFGS::step_unless(const Tensor&) { step(); }

std::span<const char* const> LBFGS::state_names() const { return {}; }

void LBFGS::update(std::size_t, ParameterState&, const Tensor&) { throw InternalError("LBFGS: updates all at once"); }

void LBFGS::remember(const Tensor& gradient) {
  const Tensor y = gradient - state_.prev_flat_grad;
  const Tensor s = state_.d * state_.t;
  const Tensor curvature = inner(y, s);
  const Tensor square = inner(y, y);
  const double ys = curvature.item();
  if (!(ys > least_curvature)) return;
  if (std::ssize(state_.ro) >= group_options().history_size) {
    state_.old_dirs.erase(state_.old_dirs.begin());
    state_.old_stps.erase(state_.old_stps.begin());
    state_.ro.erase(state_.ro.begin());
  }
  state_.old_dirs.push_back(y);
  state_.old_stps.push_back(s);
  state_.ro.push_back(1 / ys);
  state_.h_diag = ys / square.item();
}

/// -H g by the two loops over the history.
Tensor LBFGS::direction(const Tensor& gradient) const {
  const std::size_t count = state_.ro.size();
  std::vector<Tensor> shares(count);
  Tensor d = -gradient;
  for (std::size_t i = count; i-- > 0;) {
    shares[i] = inner(state_.old_stps[i], d) * state_.ro[i];
    d = d - state_.old_dirs[i] * shares[i];
  }
  d = d * state_.h_diag;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor share = inner(state_.old_dirs[i], d) * state_.ro[i];
    d = d + state_.old_stps[i] * (shares[i] - share);
  }
  return d;
}

Tensor LBFGS::step(const std::function<Tensor()>& closure) {
  if (num_groups() != 1) throw ValueError("LBFGS: takes one group of parameters");
  const NoGrad guard;
  const LBFGSOptions o = group_options();
  const std::vector<Tensor>& all = parameters();
  const std::int64_t max_eval = o.max_eval.value_or(o.max_iter * 5 / 4);
  std::int64_t evaluations = 0;
  const auto evaluate = [&] {
    const SetGrad grad_mode(true);
    ++evaluations;
    ++state_.func_evals;
    return closure();
  };

  const Tensor loss_before = evaluate();
  double loss = loss_before.item();
  Tensor gradient = flat_gradient(all);
  if (largest(gradient) <= o.tolerance_grad) return loss_before;
  for (std::int64_t iteration = 1; iteration <= o.max_iter; ++iteration) {
    const bool first = ++state_.n_iter == 1;
    if (!first) remember(gradient);
    state_.d = direction(gradient);
    state_.t = o.lr * (first ? std::min(1.0, 1 / sum(abs(gradient)).item()) : 1);
    state_.prev_flat_grad = gradient;
    state_.prev_loss = loss;
    const double slope = inner(gradient, state_.d).item();
    if (slope > -o.tolerance_change) break;

    if (o.line_search_fn == LineSearch::strong_wolfe) {
      std::vector<Tensor> start;
      for (const Tensor& parameter : all) start.push_back(parameter.detach().clone());
      const auto evaluate_at = [&](double t) {
        move(all, t, state_.d);
        LinePoint point{t, evaluate().item(), flat_gradient(all), 0};
        point.slope = inner(point.gradient, state_.d).item();
        for (std::size_t i = 0; i < all.size(); ++i) Tensor(all[i]).copy_(start[i]);
        return point;
      };
      const LinePoint found = strong_wolfe(evaluate_at, {0, loss, gradient, slope}, state_.t, largest(state_.d),
                                           least_change, max_eval - evaluations);
      state_.t = found.t;
      loss = found.loss;
      gradient = found.gradient;
      move(all, state_.t, state_.d);
    } else {
      move(all, state_.t, state_.d);
      if (iteration == o.max_iter) break;
      loss = evaluate().item();
      gradient = flat_gradient(all);
    }
    if (evaluations >= max_eval || largest(gradient) <= o.tolerance_grad) break;
    if (largest(state_.d) * std::abs(state_.t) <= o.tolerance_change) break;
    if (std::abs(loss - state_.prev_loss) < o.tolerance_change) break;
  }
  mark();
  return loss_before;
}

OptimizerState LBFGS::state_dict() const {
  OptimizerState dict = OptimizerOf::state_dict();
  const auto number = [&](const std::string& name, double value) { dict.numbers[prefix + name] = value; };
  number("func_evals", static_cast<double>(state_.func_evals));
  number("n_iter", static_cast<double>(state_.n_iter));
  number("t", state_.t);
  number("h_diag", state_.h_diag);
  number("prev_loss", state_.prev_loss);
  number("history", static_cast<double>(state_.ro.size()));
  if (state_.n_iter == 0) return dict;
  dict.tensors.insert(prefix + "d", state_.d);
  dict.tensors.insert(prefix + "prev_flat_grad", state_.prev_flat_grad);
  for (std::size_t i = 0; i < state_.ro.size(); ++i) {
    number(fmt::format("ro.{}", i), state_.ro[i]);
    dict.tensors.insert(fmt::format("{}old_dirs.{}", prefix, i), state_.old_dirs[i]);
    dict.tensors.insert(fmt::format("{}old_stps.{}", prefix, i), state_.old_stps[i]);
  }
  return dict;
}

void LBFGS::load_state_dict(const OptimizerState& dict) {
  OptimizerState common;
  for (const auto& [name, value] : dict.numbers) {
    if (!name.starts_with(prefix)) common.numbers[name] = value;
  }
  for (const auto& [name, tensor] : dict.tensors) {
    if (!name.starts_with(prefix)) common.tensors.insert(name, tensor);
  }
  const auto number = [&](const std::string& name) {
    const auto found = dict.numbers.find(prefix + name);
    if (found == dict.numbers.end()) throw ValueError(fmt::format("LBFGS: the state has no {}{}", prefix, name));
    return found->second;
  };
  const Shape shape{size_of_all(parameters())};
  const auto vector = [&](const std::string& name) {
    const Tensor* found = dict.tensors.find(prefix + name);
    if (found == nullptr) throw ValueError(fmt::format("LBFGS: the state has no {}{}", prefix, name));
    if (found->sizes() != shape) {
      throw ValueError(fmt::format("LBFGS: {}{} is {} in the state, {} is wanted", prefix, name,
                                   to_string(found->sizes()), to_string(shape)));
    }
    const Tensor& like = parameters()[0];
    return found->detach().to(like.dtype()).to(like.device()).clone();
  };
  State loaded;
  loaded.func_evals = static_cast<std::int64_t>(number("func_evals"));
  loaded.n_iter = static_cast<std::int64_t>(number("n_iter"));
  loaded.t = number("t");
  loaded.h_diag = number("h_diag");
  loaded.prev_loss = number("prev_loss");
  if (loaded.n_iter > 0) {
    loaded.d = vector("d");
    loaded.prev_flat_grad = vector("prev_flat_grad");
    const auto history = static_cast<std::size_t>(number("history"));
    for (std::size_t i = 0; i < history; ++i) {
      loaded.ro.push_back(number(fmt::format("ro.{}", i)));
      loaded.old_dirs.push_back(vector(fmt::format("old_dirs.{}", i)));
      loaded.old_stps.push_back(vector(fmt::format("old_stps.{}", i)));
    }
  }
  OptimizerOf::load_state_dict(common);
  state_ = std::move(loaded);
}

}  // namespace russet::optim
