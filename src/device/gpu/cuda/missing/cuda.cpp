// Stands in for the driver where the build lacks CUDA's headers.
#include <russet/error.h>

#include "runtime/device.h"

namespace russet::cuda {
namespace {

const bool registered = [] {
  runtime::register_device(DeviceType::cuda,
                           []() -> std::unique_ptr<runtime::DeviceDriver> { throw DeviceError(RUSSET_CUDA_MISSING); });
  return true;
}();

}  // namespace
}  // namespace russet::cuda
