// clone(): copying a module while a CloneScope lives copies each shared part once, wherever it is held.
#include <russet/autograd.h>
#include <russet/nn/module.h>

#include "state.h"

namespace russet::nn {
namespace {

thread_local CloneScope* current = nullptr;

}  // namespace

CloneScope::CloneScope() : outer_(current) { current = this; }
CloneScope::~CloneScope() { current = outer_; }

Tensor CloneScope::copy(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  for (const auto& [from, to] : tensors_) {
    if (from.state() == tensor.state() || to.state() == tensor.state()) return to;
  }
  Tensor made = tensor.detach().clone();
  if (tensor.requires_grad()) made.requires_grad_();
  mark_persistent(made);
  tensors_.emplace_back(tensor, made);
  return made;
}

std::shared_ptr<Module::State> CloneScope::copy(const std::shared_ptr<Module::State>& state) {
  for (const auto& [from, to] : states_) {
    if (from == state || to == state) return to;
  }
  auto made = std::make_shared<Module::State>();
  states_.emplace_back(state, made);
  made->training = state->training;
  made->parameters = state->parameters;  // copies each Parameter, through this scope
  made->buffers = state->buffers;
  made->children = state->children;
  const ModuleHooks& hooks = state->hooks;
  made->hooks = {hooks.forward_pre.clone(), hooks.forward.clone(), hooks.backward_pre.clone(), hooks.backward.clone()};
  made->has_hooks = state->has_hooks.load();
  return made;
}

Parameter::Parameter(const Parameter& other)
    : Tensor(current ? current->copy(static_cast<const Tensor&>(other)) : static_cast<const Tensor&>(other)) {}

Module::Module(const Module& other) : state_(current ? current->copy(other.state_) : other.state_) {}

AnyModule::AnyModule(const AnyModule& other)
    : Module(other), module_(current ? other.copy_(*other.module_) : other.module_), copy_(other.copy_) {}

}  // namespace russet::nn
