// Stands in for the driver where the build lacks what Metal or the simulator needs.
#include <russet/error.h>

#include "runtime/device.h"

namespace russet::metal {
namespace {

const bool registered = [] {
  runtime::register_device(DeviceType::mps,
                           []() -> std::unique_ptr<runtime::DeviceDriver> { throw DeviceError(RUSSET_METAL_MISSING); });
  return true;
}();

}  // namespace
}  // namespace russet::metal
