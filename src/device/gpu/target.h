#pragma once
// What the compiler asks a GPU: groups go to the emitter, primitives to templates, and what neither takes to the CPU.
#include <memory>

#include "compile/step.h"
#include "device/gpu/launch.h"

namespace russet::gpu {

/// The target of a driver's device; the driver outlives it.
std::unique_ptr<compile::Target> make_target(Driver& driver, DeviceType type);

}  // namespace russet::gpu
