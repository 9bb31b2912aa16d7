// In the place of the driver where the build lacks what it needs.
#include "runtime/device.h"

namespace russet::metal {
namespace {

const bool registered = [] {
  runtime::register_unavailable(DeviceType::mps, RUSSET_METAL_MISSING);
  return true;
}();

}  // namespace
}  // namespace russet::metal
