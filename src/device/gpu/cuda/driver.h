#pragma once
// The driver of NVIDIA's GPUs: CUDA's backend put together.
#include <memory>

#include "device/gpu/launch.h"

namespace russet::cuda {

/// Throws DeviceError if there is no GPU, no driver of NVIDIA's, or no NVRTC.
std::unique_ptr<gpu::Driver> make_driver();

}  // namespace russet::cuda
