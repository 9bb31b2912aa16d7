#pragma once
// How CIFAR-10's images become inputs.
#include <russet/models/registry.h>

namespace russet::models {

inline Preprocessing cifar10_images() {
  return {.size = 32, .any_channels = true, .mean = {0.4914F, 0.4822F, 0.4465F}, .std = {0.2470F, 0.2435F, 0.2616F}};
}

}  // namespace russet::models
