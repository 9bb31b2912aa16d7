// The device mps makes itself known. In the file that holds metal-cpp's classes and selectors, so that they are set
// before this runs.
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include "device/gpu/metal/driver.h"
#include "device/gpu/metal/metal.h"

namespace russet::metal {
namespace {

const bool registered = [] {
  runtime::register_unavailable(DeviceType::mps, "the driver runs kernels; plans are not compiled for it yet");
  return true;
}();

}  // namespace
}  // namespace russet::metal
