#pragma once
// What all handles of a module share.
#include <russet/hook_list.h>
#include <russet/nn/module.h>

#include <atomic>

namespace russet::nn {

struct NamedTensor {
  std::string name;
  Parameter tensor;  // undefined: absent
  bool persistent = true;
};

/// The hooks of a module.
struct ModuleHooks {
  Hooks<std::vector<Tensor>(Module&, std::span<const Tensor>)> forward_pre;
  Hooks<Tensor(Module&, std::span<const Tensor>, const Tensor&)> forward;
  Hooks<Tensor(Module&, const Tensor&)> backward_pre;
  Hooks<std::vector<Tensor>(Module&, std::span<const Tensor>, const Tensor&)> backward;
};

struct Module::State {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  NamedModules children;
  ModuleHooks hooks;
  std::atomic<bool> has_hooks{false};  // stays true once one was registered
  bool training = true;
};

}  // namespace russet::nn
