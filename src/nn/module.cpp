// Module: registration, traversal, modes and moves.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/captured_function.h>
#include <russet/nn/init.h>
#include <russet/nn/module.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>
#include <utility>

#include "state.h"

namespace russet::nn {
namespace {

void require_name(const char* function, const std::string& name) {
  if (!name.empty() && name.find('.') == std::string::npos) return;
  throw ValueError(fmt::format("{}: \"{}\" is no name: it must not be empty or hold a dot", function, name));
}

template <class Entries>
auto find_named(Entries& entries, const std::string& name) {
  return std::find_if(entries.begin(), entries.end(), [&](const NamedTensor& entry) { return entry.name == name; });
}

Parameter insert(std::vector<NamedTensor>& entries, NamedTensor entry) {
  const auto found = find_named(entries, entry.name);
  if (found == entries.end()) {
    entries.push_back(entry);
  } else {
    *found = entry;
  }
  return entry.tensor;
}

bool is_in(const NamedTensors& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& entry) { return entry.second.state() == tensor.state(); });
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::vector<Tensor> without_names(const NamedTensors& named) {
  std::vector<Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

Tensor converted(const Tensor& tensor, DType dtype) { return tensor.detach().to(dtype); }
/// A copy, though devices may share memory: a GPU reaches many tensors in few launches if they lie in its own blocks.
Tensor converted(const Tensor& tensor, Device device) {
  if (tensor.device() == device) return tensor.detach();
  return Tensor::from_bytes(tensor.to_bytes(), tensor.sizes(), {tensor.dtype(), device});
}

/// Makes the handle look at converted storage, its gradient too.
template <class Target>
void move_to(const Tensor& tensor, Target target) {
  const Tensor gradient = tensor.grad();
  tensor.set_data(converted(tensor, target));
  mark_persistent(tensor);
  if (gradient.defined()) tensor.set_grad(converted(gradient, target));
}

thread_local TensorOptions new_modules;

}  // namespace

Module::Module() : state_(std::make_shared<State>()) {}

Tensor Module::forward(const Tensor&) {
  throw ValueError("this module has no forward() of one input. Call it with all of its inputs");
}

Tensor Module::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() == 1) return forward(inputs[0]);
  throw ValueError(fmt::format("this module takes one input, not {}", inputs.size()));
}

Parameter Module::register_parameter(const std::string& name, const Tensor& tensor) {
  require_name("register_parameter", name);
  if (tensor.defined()) {
    if (!tensor.is_leaf()) {
      throw ValueError(
          fmt::format("register_parameter: \"{}\" is the result of operators, not a leaf. detach() it", name));
    }
    if (is_floating(tensor.dtype())) Tensor(tensor).requires_grad_();
    mark_persistent(tensor);
  }
  return insert(state_->parameters, {name, tensor, true});
}

Parameter Module::register_buffer(const std::string& name, const Tensor& tensor, bool persistent) {
  require_name("register_buffer", name);
  if (tensor.defined()) mark_persistent(tensor);
  return insert(state_->buffers, {name, tensor, persistent});
}

void Module::add_child(const std::string& name, AnyModule module) {
  require_name("register_module", name);
  if (module.state_ == state_) throw ValueError(fmt::format("register_module: \"{}\" is the module itself", name));
  for (auto& [known, child] : state_->children) {
    if (known != name) continue;
    child = std::move(module);
    return;
  }
  state_->children.emplace_back(name, std::move(module));
}

const NamedModules& Module::named_children() const { return state_->children; }

void Module::visit(const std::string& prefix, const std::function<void(const std::string&, Module&)>& f) {
  f(prefix, *this);
  for (auto& [name, child] : state_->children) child.get().visit(joined(prefix, name), f);
}

NamedTensors Module::named_parameters() const {
  NamedTensors found;
  const_cast<Module*>(this)->visit("", [&](const std::string& prefix, Module& module) {
    for (const NamedTensor& entry : module.state_->parameters) {
      if (!entry.tensor.defined() || is_in(found, entry.tensor)) continue;
      found.emplace_back(joined(prefix, entry.name), entry.tensor);
    }
  });
  return found;
}

NamedTensors Module::named_buffers() const {
  NamedTensors found;
  const_cast<Module*>(this)->visit("", [&](const std::string& prefix, Module& module) {
    for (const NamedTensor& entry : module.state_->buffers) {
      if (!entry.tensor.defined() || is_in(found, entry.tensor)) continue;
      found.emplace_back(joined(prefix, entry.name), entry.tensor);
    }
  });
  return found;
}

std::vector<Tensor> Module::parameters() const { return without_names(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return without_names(named_buffers()); }

std::int64_t Module::num_parameters() const {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : named_parameters()) count += parameter.numel();
  return count;
}

StateDict Module::state_dict() const {
  StateDict state;
  const_cast<Module*>(this)->visit("", [&](const std::string& prefix, Module& module) {
    for (const auto* entries : {&module.state_->parameters, &module.state_->buffers}) {
      for (const NamedTensor& entry : *entries) {
        if (entry.tensor.defined() && entry.persistent) state.insert(joined(prefix, entry.name), entry.tensor.detach());
      }
    }
  });
  return state;
}

void Module::train(bool mode) {
  bool changed = false;
  visit("",
        [&](const std::string&, Module& module) { changed |= std::exchange(module.state_->training, mode) != mode; });
  if (changed) note_changed_setting();
}

bool Module::is_training() const { return state_->training; }

ModeScope::ModeScope(Module& module, bool training) {
  module.visit(
      "", [&](const std::string&, Module& inside) { before_.emplace_back(inside.state_, inside.state_->training); });
  module.train(training);
}

ModeScope::~ModeScope() {
  bool changed = false;
  for (auto& [state, training] : before_) changed |= std::exchange(state->training, training) != training;
  if (changed) note_changed_setting();
}

void Module::to(Device device) {
  const NoGrad guard;
  for (const Tensor& tensor : parameters()) move_to(tensor, device);
  for (const Tensor& tensor : buffers()) move_to(tensor, device);
}

void Module::to(DType dtype) {
  if (!is_floating(dtype)) {
    throw TypeError(fmt::format("Module::to: parameters are of floating types, not {}", name_of(dtype)));
  }
  const NoGrad guard;
  for (const auto& tensors : {parameters(), buffers()}) {
    for (const Tensor& tensor : tensors) {
      if (is_floating(tensor.dtype())) move_to(tensor, dtype);
    }
  }
}

void Module::requires_grad_(bool value) {
  for (Tensor parameter : parameters()) {
    if (is_floating(parameter.dtype())) parameter.requires_grad_(value);
  }
}

void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) {
    if (parameter.grad().defined()) parameter.set_grad({});
  }
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (auto& [name, child] : state_->children) child.get().apply(f);
  f(*this);
}

NewModules::NewModules(Device device, DType dtype) : before_(new_modules) {
  if (!is_floating(dtype)) {
    throw TypeError(fmt::format("NewModules: parameters are of floating types, not {}", name_of(dtype)));
  }
  new_modules = {dtype, device};
}

NewModules::~NewModules() { new_modules = before_; }

TensorOptions NewModules::options() { return new_modules; }

namespace {

std::string type_name(const Module& module) {
  int status = 0;
  const char* mangled = typeid(module).name();
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  const std::string name = status == 0 ? text.get() : mangled;
  const std::size_t colon = name.find('<') == std::string::npos ? name.rfind(':') : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

void print(const Module& module, const std::string& name, const std::string& indent, std::string& text) {
  text += fmt::format("{}{}{}", indent, name.empty() ? "" : "(" + name + "): ", type_name(module));
  if (const std::int64_t count = module.num_parameters()) text += fmt::format(", {} parameters", count);
  text += "\n";
  for (const auto& [child_name, child] : module.named_children()) print(child.get(), child_name, indent + "  ", text);
}

}  // namespace

std::string to_string(const Module& module) {
  std::string text;
  print(module, "", "", text);
  return text;
}

}  // namespace russet::nn
