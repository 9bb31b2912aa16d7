// Calling a module: forward(), with the module's hooks around it.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/nn/module.h>

#include <map>
#include <mutex>
#include <thread>

#include "state.h"

namespace russet::nn {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;
using Inputs = std::span<const Tensor>;

/// The backward hooks of one call of a module.
class BackwardHooks {
 public:
  BackwardHooks(Module module, const ModuleHooks& hooks, Inputs inputs)
      : module_(std::move(module)),
        pre_(hooks.backward_pre.present()),
        full_(hooks.backward.present()),
        input_count_(inputs.size()) {
    for (const Tensor& input : inputs) has_gradients_ = has_gradients_ || (input.defined() && input.requires_grad());
  }

  bool any() const { return !pre_.empty() || !full_.empty(); }
  /// Whether an input wants a gradient: hooks then wait for it.
  bool has_gradients() const { return has_gradients_; }

  /// The output's gradient has arrived.
  Tensor output_arrived(Tensor gradient) {
    for (const auto& hook : pre_) {
      if (const Tensor replaced = (*hook)(module_, gradient); replaced.defined()) gradient = replaced;
    }
    if (has_gradients_) {
      const std::lock_guard lock(mutex_);
      grad_outputs_[std::this_thread::get_id()] = gradient;
      return gradient;
    }
    const variable_list none(input_count_);
    for (const auto& hook : full_) {
      for (const Tensor& made : (*hook)(module_, none, gradient)) {
        if (made.defined()) throw AutogradError("register_full_backward_hook: no input of the module wants a gradient");
      }
    }
    return gradient;
  }

  /// The inputs' gradients have arrived.
  variable_list inputs_arrived(variable_list gradients) {
    Tensor grad_output;
    {
      const std::lock_guard lock(mutex_);
      if (auto found = grad_outputs_.extract(std::this_thread::get_id())) grad_output = found.mapped();
    }
    for (const auto& hook : full_) {
      variable_list made = (*hook)(module_, gradients, grad_output);
      if (made.empty()) continue;
      if (made.size() != gradients.size()) {
        throw AutogradError(fmt::format("register_full_backward_hook: the hook returned {} gradients for {} inputs",
                                        made.size(), gradients.size()));
      }
      gradients = std::move(made);
    }
    return gradients;
  }

 private:
  Module module_;
  std::vector<std::shared_ptr<FullBackwardPreHook>> pre_;
  std::vector<std::shared_ptr<FullBackwardHook>> full_;
  std::size_t input_count_;
  bool has_gradients_ = false;
  // From the output's gradient to those of the inputs, of each thread that walks the graph.
  std::mutex mutex_;
  std::map<std::thread::id, Tensor> grad_outputs_;
};

using SharedHooks = std::shared_ptr<BackwardHooks>;

BackwardHooks& hooks_in(AutogradContext& ctx) { return *std::any_cast<SharedHooks&>(ctx.saved_data.at("hooks")); }

/// The inputs as they are; their gradients pass the hooks together.
struct InputGate : autograd::Function<InputGate> {
  static variable_list forward(AutogradContext* ctx, const SharedHooks& hooks, const variable_list& inputs) {
    ctx->saved_data["hooks"] = hooks;
    ctx->set_materialize_grads(false);
    variable_list constant;
    for (const Tensor& input : inputs) {
      if (input.defined() && !input.requires_grad()) constant.push_back(input);
    }
    ctx->mark_non_differentiable(constant);
    return inputs;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    variable_list result = hooks_in(*ctx).inputs_arrived(std::move(gradients));
    result.insert(result.begin(), Tensor());
    return result;
  }
};

/// The output as it is.
struct OutputGate : autograd::Function<OutputGate> {
  static Tensor forward(AutogradContext* ctx, const SharedHooks& hooks, const Tensor& output) {
    ctx->saved_data["hooks"] = hooks;
    return output;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {Tensor(), hooks_in(*ctx).output_arrived(gradients[0])};
  }
};

/// Adds a hook to the list of its kind.
template <class Signature>
HookHandle added(Hooks<Signature>& hooks, std::function<Signature> hook, std::atomic<bool>& has_hooks) {
  if (!hook) throw ValueError("registering a hook of a module: the hook is an empty function");
  has_hooks = true;
  return hooks.add(std::move(hook));
}

}  // namespace

HookHandle Module::add_hook(ForwardPreHook hook) {
  return added(state_->hooks.forward_pre, std::move(hook), state_->has_hooks);
}
HookHandle Module::add_hook(ForwardHook hook) {
  return added(state_->hooks.forward, std::move(hook), state_->has_hooks);
}
HookHandle Module::add_hook(FullBackwardPreHook hook) {
  return added(state_->hooks.backward_pre, std::move(hook), state_->has_hooks);
}
HookHandle Module::add_hook(FullBackwardHook hook) {
  return added(state_->hooks.backward, std::move(hook), state_->has_hooks);
}

Tensor Module::operator()(const Tensor& x) {
  Module& module = called();
  if (!module.state_->has_hooks) return module.forward(x);
  return module.call({&x, 1}, [&](Inputs inputs) { return module.forward(inputs[0]); });
}

Tensor Module::operator()(Inputs inputs) {
  Module& module = called();
  if (!module.state_->has_hooks) return module.forward_all(inputs);
  return module.call(inputs, [&](Inputs present) { return module.forward_all(present); });
}

Tensor Module::call(Inputs inputs, const std::function<Tensor(Inputs inputs)>& forward) {
  if (!state_->has_hooks) return forward(inputs);
  const ModuleHooks hooks = state_->hooks;  // a hook may let go of the module
  variable_list present(inputs.begin(), inputs.end());
  for (const auto& hook : hooks.forward_pre.present()) {
    variable_list replaced = (*hook)(*this, present);
    if (replaced.empty()) continue;
    if (replaced.size() != present.size()) {
      throw ValueError(fmt::format("register_forward_pre_hook: the hook returned {} tensors for {} inputs",
                                   replaced.size(), present.size()));
    }
    present = std::move(replaced);
  }
  auto backward = std::make_shared<BackwardHooks>(*this, hooks, present);
  if (!backward->any() || !is_grad_enabled()) backward = nullptr;
  if (backward && backward->has_gradients()) present = InputGate::apply(backward, present);
  Tensor output = forward(present);
  for (const auto& hook : hooks.forward.present()) {
    if (const Tensor replaced = (*hook)(*this, present, output); replaced.defined()) output = replaced;
  }
  return backward && output.requires_grad() ? OutputGate::apply(backward, output) : output;
}

}  // namespace russet::nn
