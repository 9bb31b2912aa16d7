#pragma once
// Steps that no kernel of the GPU takes run on the CPU, over the same memory.
#include <string>

#include "compile/implementation.h"
#include "device/gpu/stream.h"

namespace russet::gpu {

/// The CPU's kernel for a step, run after all launches have completed. Announces each operator and type once on
/// standard error, and counts each run. Throws DeviceError where RUSSET_FALLBACK=error forbids it.
compile::KernelPtr make_fallback(const compile::Step& step, const std::string& reason, Stream& stream, DeviceType type);

}  // namespace russet::gpu
