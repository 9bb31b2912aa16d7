#pragma once
// What the compiler asks a GPU: groups go to the emitter, primitives to templates, and what neither takes to the CPU.
#include <memory>
#include <vector>

#include "compile/step.h"
#include "device/gpu/launch.h"
#include "device/gpu/library.h"

namespace russet::gpu {

/// The target of a driver's device; the driver outlives it.
std::unique_ptr<compile::Target> make_target(Driver& driver, DeviceType type);

/// Adds the functions that a kernel of such a target launches; none where it runs on the CPU.
void collect_functions(const compile::Kernel& kernel, std::vector<FunctionPtr>& functions);

}  // namespace russet::gpu
