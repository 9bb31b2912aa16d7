#pragma once
// Gpu: the device that Metal found, and its limits.
#include <cstddef>
#include <string>

#include "device/gpu/metal/metal.h"
#include "runtime/device.h"

namespace russet::metal {

/// Memory shared with the CPU consists of whole pages of this size.
using runtime::page;

struct Gpu {
  NS::SharedPtr<MTL::Device> device;
  std::string name;
  std::string system;  // macOS's version and build
  int macos = 14;
  int family = 7;  // Apple7: M1
  std::size_t max_buffer = 0;
  std::size_t working_set = 0;
  std::size_t group_memory = 0;
  std::size_t max_threads = 0;
};

/// The GPU of this computer. Throws DeviceError, whose words say why there is none that russet can use.
Gpu find_gpu();

}  // namespace russet::metal
