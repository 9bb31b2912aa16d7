// Stands in for cuBLASLt where the build lacks its headers.
#include <russet/error.h>

#include "device/gpu/cuda/vendor_libraries.h"

namespace russet::cuda {

std::unique_ptr<const gpu::VendorLibrary> make_cublaslt(const Context& /*context*/) {
  throw DeviceError("cuBLASLt's headers were not there when russet was built");
}

}  // namespace russet::cuda
