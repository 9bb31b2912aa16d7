#pragma once
// Module: a part of a network, with parameters, buffers and other modules inside.
//
//     struct Net : nn::Module {
//       nn::Linear fc1 = register_module("fc1", nn::Linear(784, 128));
//       nn::Linear fc2 = register_module("fc2", nn::Linear(128, 10));
//       Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
//     };
//
// A module is a handle: copies share parameters, buffers, children, mode and hooks. clone() makes an independent one.
#include <russet/hooks.h>
#include <russet/io/state_dict.h>
#include <russet/tensor.h>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace russet::nn {

class AnyModule;
class Module;

/// A parameter or buffer as a member of a module. Unlike a plain Tensor, it follows its module through clone().
class Parameter : public Tensor {
 public:
  Parameter() = default;
  Parameter(Tensor tensor) : Tensor(std::move(tensor)) {}
  Parameter(const Parameter& other);
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(const Parameter&) = default;
  Parameter& operator=(Parameter&&) noexcept = default;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using NamedModules = std::vector<std::pair<std::string, AnyModule>>;

/// What load_state_dict did not find on one side or the other.
struct LoadResult {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

// Hooks of modules. A module that takes other inputs than tensors, such as masks, shows its tensors.

/// Sees the inputs of forward(); what it returns replaces them, unless it is empty.
using ForwardPreHook = std::function<std::vector<Tensor>(Module& module, std::span<const Tensor> inputs)>;
/// Sees what forward() returned; what it returns replaces that, unless it is undefined.
using ForwardHook = std::function<Tensor(Module& module, std::span<const Tensor> inputs, const Tensor& output)>;
/// Sees the output's gradient; what it returns replaces that, unless it is undefined. `module` is a handle on the
/// module that ran, without its type.
using FullBackwardPreHook = std::function<Tensor(Module& module, const Tensor& grad_output)>;
/// Sees the gradients of inputs, undefined where none is wanted; what it returns replaces them, unless it is empty.
using FullBackwardHook =
    std::function<std::vector<Tensor>(Module& module, std::span<const Tensor> grad_inputs, const Tensor& grad_output)>;

class Module {
 public:
  Module();
  Module(const Module& other);
  Module(Module&& other) noexcept : state_(other.state_) {}  // NOLINT: what is moved from stays a module
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  /// The result for one input. A module of several inputs overrides forward_all too, or only that.
  virtual Tensor forward(const Tensor& x);
  virtual Tensor forward_all(std::span<const Tensor> inputs);
  /// forward(), with the hooks of the module around it. Call modules so; forward() itself runs no hooks.
  Tensor operator()(const Tensor& x);
  /// Likewise forward_all().
  Tensor operator()(std::span<const Tensor> inputs);

  // Hooks run in order of registration. They may return nothing. Those of backward see the graph that a call made
  // while they were registered; that call's inputs and output cannot be written to in place, as in PyTorch.
  template <class Hook>
  HookHandle register_forward_pre_hook(Hook hook) {
    return add_hook(ForwardPreHook(returning<std::vector<Tensor>, Module&, std::span<const Tensor>>(std::move(hook))));
  }
  template <class Hook>
  HookHandle register_forward_hook(Hook hook) {
    return add_hook(ForwardHook(returning<Tensor, Module&, std::span<const Tensor>, const Tensor&>(std::move(hook))));
  }
  template <class Hook>
  HookHandle register_full_backward_pre_hook(Hook hook) {
    return add_hook(FullBackwardPreHook(returning<Tensor, Module&, const Tensor&>(std::move(hook))));
  }
  template <class Hook>
  HookHandle register_full_backward_hook(Hook hook) {
    return add_hook(FullBackwardHook(
        returning<std::vector<Tensor>, Module&, std::span<const Tensor>, const Tensor&>(std::move(hook))));
  }

  /// Every parameter once, by its path ("layer1.0.conv1.weight"): a module's own before its children's.
  NamedTensors named_parameters() const;
  std::vector<Tensor> parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> buffers() const;
  /// The direct children.
  const NamedModules& named_children() const;
  /// The number of elements of all parameters.
  std::int64_t num_parameters() const;
  /// Whether both handles are of one module.
  bool is_same(const Module& other) const { return state_ == other.state_; }

  /// Parameters and persistent buffers, as aliases outside the tape.
  StateDict state_dict() const;
  /// Copies the tensors of `state` into the parameters and buffers of those names, converted to their types. Throws one
  /// ValueError that lists all names that are missing, unexpected (unless not `strict`) or of another shape; nothing is
  /// changed then. Batch norm's num_batches_tracked may be missing, as in PyTorch.
  LoadResult load_state_dict(const StateDict& state, bool strict = true);

  /// Training or evaluation mode, of all modules inside too: dropout and batch norm differ.
  void train(bool mode = true);
  void eval() { train(false); }
  bool is_training() const;

  /// Moves parameters, buffers and gradients; or converts the floating ones. Optimizers made before keep working on the
  /// parameters but not on their old state: move first.
  void to(Device device);
  void to(DType dtype);
  /// Whether parameters take part in gradients.
  void requires_grad_(bool value = true);
  /// Drops all gradients.
  void zero_grad();
  /// Calls `f` on all modules inside, children first, and on this one. `dynamic_cast` tells what they are.
  void apply(const std::function<void(Module&)>& f);

  /// Adds a parameter, a buffer or a child, or replaces that of the same name. Throws ValueError for an empty name or
  /// one with a dot. An undefined tensor is remembered as absent.
  Parameter register_parameter(const std::string& name, const Tensor& tensor);
  /// persistent: whether it is part of the state dict.
  Parameter register_buffer(const std::string& name, const Tensor& tensor, bool persistent = true);
  template <std::derived_from<Module> M>
  M register_module(const std::string& name, M module);

 protected:
  struct State;
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// What operator() of a module with inputs of its own calls: `forward`, with the hooks of the module around it.
  Tensor call(std::span<const Tensor> inputs, const std::function<Tensor(std::span<const Tensor> inputs)>& forward);

 private:
  friend class AnyModule;
  friend class CloneScope;
  friend class ModeScope;
  /// The module that runs when this one is called.
  virtual Module& called() { return *this; }
  HookHandle add_hook(ForwardPreHook hook);
  HookHandle add_hook(ForwardHook hook);
  HookHandle add_hook(FullBackwardPreHook hook);
  HookHandle add_hook(FullBackwardHook hook);
  void add_child(const std::string& name, AnyModule module);
  void visit(const std::string& prefix, const std::function<void(const std::string&, Module&)>& f);

  std::shared_ptr<State> state_;
};

/// Any module, behind one type: copies share it.
class AnyModule : public Module {
 public:
  template <std::derived_from<Module> M>
  requires(!std::same_as<M, AnyModule>) AnyModule(M module)
      : Module(module), module_(std::make_shared<M>(std::move(module))), copy_(&copy_of<M>) {}
  AnyModule(const AnyModule& other);
  AnyModule(AnyModule&&) noexcept = default;
  AnyModule& operator=(const AnyModule&) = default;

  /// Calls the module, hooks included.
  Tensor forward(const Tensor& x) override { return (*module_)(x); }
  Tensor forward_all(std::span<const Tensor> inputs) override { return (*module_)(inputs); }
  Module& get() const { return *module_; }
  /// The module if it is an M, else nullptr.
  template <class M>
  M* as() const {
    return dynamic_cast<M*>(module_.get());
  }

 private:
  Module& called() override { return module_->called(); }
  template <class M>
  static std::shared_ptr<Module> copy_of(const Module& module) {
    return std::make_shared<M>(static_cast<const M&>(module));
  }
  std::shared_ptr<Module> module_;
  std::shared_ptr<Module> (*copy_)(const Module&);
};

template <std::derived_from<Module> M>
M Module::register_module(const std::string& name, M module) {
  add_child(name, AnyModule(module));
  return module;
}

/// While an object of this lives, in this thread, copying a module or a Parameter copies what it holds, once.
class CloneScope {
 public:
  CloneScope();
  ~CloneScope();
  CloneScope(const CloneScope&) = delete;
  CloneScope& operator=(const CloneScope&) = delete;

 private:
  friend class Module;
  friend class Parameter;
  std::shared_ptr<Module::State> copy(const std::shared_ptr<Module::State>& state);
  Tensor copy(const Tensor& tensor);

  CloneScope* outer_;
  std::vector<std::pair<std::shared_ptr<Module::State>, std::shared_ptr<Module::State>>> states_;
  std::vector<std::pair<Tensor, Tensor>> tensors_;
};

/// An independent copy of a module: same values, no gradients.
template <std::derived_from<Module> M>
M clone(const M& module) {
  const CloneScope scope;
  return M(module);
}

/// While an object of this lives, a module and all inside are in training mode, or in evaluation mode. Then each is in
/// the mode that it had.
class ModeScope {
 public:
  ModeScope(Module& module, bool training);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<Module::State>, bool>> before_;
};

/// While an object of this lives, in this thread, new modules make their parameters on `device`, of type `dtype`.
class NewModules {
 public:
  explicit NewModules(Device device, DType dtype = DType::float32);
  ~NewModules();
  NewModules(const NewModules&) = delete;
  NewModules& operator=(const NewModules&) = delete;
  /// Where new modules make their parameters now: float32 on the CPU outside every scope.
  static TensorOptions options();

 private:
  TensorOptions before_;
};

/// The tree of modules, as PyTorch prints it: a line a module, with its name and the number of its parameters.
std::string to_string(const Module& module);

}  // namespace russet::nn
