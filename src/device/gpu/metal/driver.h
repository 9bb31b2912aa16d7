#pragma once
// The metal driver: Apple's GPUs, through metal-cpp.
#include <memory>

#include "device/gpu/launch.h"

namespace russet::metal {

/// A driver of this computer's GPU. Throws DeviceError, whose words say why there is none.
std::unique_ptr<gpu::Driver> make_driver();

}  // namespace russet::metal
