// Stands in for cuDNN where the build lacks its headers.
#include <russet/error.h>

#include "device/gpu/cuda/vendor_libraries.h"

namespace russet::cuda {

std::unique_ptr<const gpu::VendorLibrary> make_cudnn(const Context& /*context*/) {
  throw DeviceError("cuDNN's headers were not there when russet was built");
}

}  // namespace russet::cuda
