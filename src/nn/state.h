#pragma once
// What all handles of a module share.
#include <russet/nn/module.h>

namespace russet::nn {

struct NamedTensor {
  std::string name;
  Parameter tensor;  // undefined: absent
  bool persistent = true;
};

struct Module::State {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  NamedModules children;
  bool training = true;
};

}  // namespace russet::nn
