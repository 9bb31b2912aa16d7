// Functions with gradients of the user's own: the call of forward(), and the tape's entry that calls backward().
#include <fmt/format.h>
#include <russet/custom_function.h>
#include <russet/error.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "autograd/history.h"
#include "autograd/saved_tensors.h"
#include "autograd/storage.h"
#include "autograd/tape.h"

namespace russet::autograd {
namespace {

std::string name_of_type(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : type.name();
}

/// What the gradient of a tensor must be like.
struct Likeness {
  bool is_tensor = false;
  Shape sizes;
  DType dtype = DType::float32;
  Device device{};
};

Likeness likeness_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {true, tensor.sizes(), tensor.dtype(), tensor.device()};
}

std::vector<Likeness> likenesses_of(const variable_list& tensors) {
  std::vector<Likeness> found;
  found.reserve(tensors.size());
  for (const Tensor& tensor : tensors) found.push_back(likeness_of(tensor));
  return found;
}

bool expands_to(const Shape& from, const Shape& to) {
  const int added = to.rank() - from.rank();
  if (added < 0) return false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[axis + added]) return false;
  }
  return true;
}

/// The number of the tensor among `tensors`, as a handle; -1 if it is none of them.
std::ptrdiff_t find(const variable_list& tensors, const Tensor& tensor) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.state() == tensor.state(); });
  return found == tensors.end() ? -1 : found - tensors.begin();
}

bool contains(const variable_list& tensors, const Tensor& tensor) { return find(tensors, tensor) >= 0; }

}  // namespace

/// The call of a custom Function on the tape: one entry for all of its results.
class CustomEntry final : public TapeEntry {
 public:
  CustomEntry(std::string name, std::vector<Edge> edges, const variable_list& arguments, detail::Backward backward)
      : TapeEntry(std::move(edges)), name_(std::move(name)), arguments_(likenesses_of(arguments)), backward_(backward) {
    context_.entry_ = this;
  }
  ~CustomEntry() override { unregister_saved(); }

  AutogradContext& context() { return context_; }
  SavedTensors& saved_tensors() { return saved_; }
  /// forward() is over.
  void seal(const variable_list& results) {
    results_ = likenesses_of(results);
    if (!saved_.empty()) register_saved();
  }

  std::vector<Tensor> gradients(std::span<const Tensor> arrived) override {
    variable_list given(results_.size());
    std::copy(arrived.begin(), arrived.end(), given.begin());
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Likeness& result = results_[i];
      if (given[i].defined() || !context_.materialize_grads_ || !result.is_tensor) continue;
      given[i] = graph::wrap(graph::constant(0, result.dtype, result.device, result.sizes));
    }
    // The user's code may write to the context: passes of other threads wait, as in PyTorch.
    const std::lock_guard lock(mutex_);
    return checked(backward_(&context_, std::move(given)));
  }

  void release() override {
    unregister_saved();
    saved_.release();
  }
  std::span<const graph::NodeRef> saved() const override { return saved_.nodes(); }
  std::string_view name() const override { return name_; }

 private:
  variable_list checked(variable_list gradients) const {
    while (gradients.size() > arguments_.size() && !gradients.back().defined()) gradients.pop_back();
    if (gradients.size() != arguments_.size()) {
      throw AutogradError(
          fmt::format("{}::backward returned {} gradients; forward takes {} arguments, and each needs "
                      "one (an undefined tensor where there is none)",
                      name_, gradients.size(), arguments_.size()));
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) gradients[i] = fitted(gradients[i], i);
    }
    return gradients;
  }

  Tensor fitted(const Tensor& gradient, std::size_t i) const {
    const Likeness& argument = arguments_[i];
    if (!argument.is_tensor) {
      throw AutogradError(
          fmt::format("{}::backward returned a gradient for argument {}, which is no tensor", name_, i));
    }
    if (!inputs()[i]) return {};
    if (!expands_to(argument.sizes, gradient.sizes())) {
      throw ShapeError(fmt::format("{}::backward returned a gradient of shape {} for argument {}, which has shape {}",
                                   name_, to_string(gradient.sizes()), i, to_string(argument.sizes)));
    }
    if (!(gradient.device() == argument.device)) {
      throw DeviceError(fmt::format("{}::backward returned a gradient on {} for argument {}, which is on {}", name_,
                                    to_string(gradient.device()), i, to_string(argument.device)));
    }
    const Tensor summed = sum_to(gradient, argument.sizes);
    return summed.dtype() == argument.dtype ? summed : summed.to(argument.dtype);
  }

  std::string name_;
  std::vector<Likeness> arguments_;
  std::vector<Likeness> results_;
  detail::Backward backward_;
  AutogradContext context_;
  SavedTensors saved_;
  std::recursive_mutex mutex_;  // backward() may start a pass that comes here again
};

/// One call of a custom Function: runs forward() and puts its results on the tape.
class CustomCall {
 public:
  CustomCall(const std::type_info& function, const variable_list& arguments, detail::Backward backward)
      : arguments_(arguments) {
    const bool wanted =
        std::any_of(arguments.begin(), arguments.end(), [](const Tensor& t) { return t.requires_grad(); });
    if (!wanted || !is_grad_enabled()) return;
    std::vector<Edge> edges;
    for (const Tensor& argument : arguments) edges.push_back(argument.defined() ? edge_of(argument) : Edge{});
    entry_ = make_ref<CustomEntry>(name_of_type(function), std::move(edges), arguments, backward);
  }

  variable_list run(const detail::Forward& forward) {
    AutogradContext outside_the_tape;
    AutogradContext& context = entry_ ? entry_->context() : outside_the_tape;
    {
      const NoGrad guard;
      made_ = forward(&context);
    }
    require_dirty_results(context);
    variable_list results;
    for (std::size_t i = 0; i < made_.size(); ++i) results.push_back(result(context, i));
    if (entry_) {
      for (const Tensor& tensor : context.to_save_) save(context, tensor);
      entry_->seal(results);
    }
    context.to_save_.clear();
    context.dirty_.clear();
    context.non_differentiable_.clear();
    return results;
  }

 private:
  void require_dirty_results(const AutogradContext& context) const {
    for (const Tensor& dirty : context.dirty_) {
      if (contains(made_, dirty)) continue;
      throw AutogradError(
          "mark_dirty: an argument that forward() has written to in place must be among its results, so that its "
          "gradient can be found");
    }
  }

  bool is_differentiable(const AutogradContext& context, const Tensor& result) const {
    return entry_ && is_floating(result.dtype()) && !contains(context.non_differentiable_, result);
  }

  /// What the caller gets for result `i`.
  Tensor result(const AutogradContext& context, std::size_t i) const {
    const Tensor& made = made_[i];
    if (!made.defined()) return made;
    const bool is_dirty = contains(context.dirty_, made);
    const bool is_argument = contains(arguments_, made);
    if (!is_differentiable(context, made)) {
      return made.requires_grad() || (is_argument && !is_dirty) ? made.detach() : made;
    }
    const Edge here{entry_, nullptr, static_cast<std::uint32_t>(i)};
    if (is_dirty && is_argument) {
      tape_write(made, here);
      return made;
    }
    const bool is_new = !is_argument && made.state()->root && !made.requires_grad();
    Tensor result = made;
    if (!is_new) {
      // An argument as it was, a result that is returned twice, or a tensor from elsewhere: a view of it.
      const NoGrad guard;
      result = alias(made, made.state()->geometry);
    }
    const Ref<History> history = require_history(result);
    history->entry = here.entry;
    history->result = here.result;
    return result;
  }

  void save(const AutogradContext& context, const Tensor& tensor) {
    SavedTensors& saved = entry_->saved_tensors();
    if (!tensor.defined()) return saved.add(tensor, {});
    const std::ptrdiff_t argument = find(arguments_, tensor);
    if (argument >= 0 && !contains(context.dirty_, tensor)) {
      saved.add(tensor, entry_->inputs()[static_cast<std::size_t>(argument)]);
    } else if (const std::ptrdiff_t made = find(made_, tensor); made < 0) {
      saved.add(tensor, edge_of(tensor));
    } else if (is_differentiable(context, tensor)) {
      saved.add_result(tensor, static_cast<std::uint32_t>(made));
    } else {
      saved.add(tensor, {});
    }
  }

  const variable_list& arguments_;
  variable_list made_;  // what forward() returned
  Ref<CustomEntry> entry_;
};

namespace detail {

variable_list call_function(const std::type_info& function, const variable_list& arguments, const Forward& forward,
                            Backward backward) {
  return CustomCall(function, arguments, backward).run(forward);
}

}  // namespace detail

void AutogradContext::save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }

variable_list AutogradContext::get_saved_variables() const {
  return entry_ && to_save_.empty() ? entry_->saved_tensors().get(*entry_) : to_save_;
}

void AutogradContext::mark_dirty(variable_list arguments) { dirty_ = std::move(arguments); }

void AutogradContext::mark_non_differentiable(variable_list results) { non_differentiable_ = std::move(results); }

bool AutogradContext::needs_input_grad(std::size_t argument) const {
  return entry_ && argument < entry_->inputs().size() && static_cast<bool>(entry_->inputs()[argument]);
}

}  // namespace russet::autograd
