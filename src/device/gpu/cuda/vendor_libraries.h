#pragma once
// NVIDIA's libraries for contractions.
#include <memory>

#include "device/gpu/cuda/context.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

/// Each throws DeviceError that says why there is none.
std::unique_ptr<const gpu::VendorLibrary> make_cublaslt(const Context& context);
std::unique_ptr<const gpu::VendorLibrary> make_cudnn(const Context& context);

}  // namespace russet::cuda
