// The device mps makes itself known. In the file that holds metal-cpp's classes and selectors, so that they are set
// before this runs.
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include <russet/error.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "device/gpu/metal/driver.h"
#include "device/gpu/metal/metal.h"

namespace russet::metal {
namespace {

/// Why there is no device, or nothing.
std::string register_driver() {
#ifndef __APPLE__
  const char* const wanted = std::getenv("RUSSET_METAL");
  if (wanted == nullptr || std::string_view(wanted) != "simulator") {
    return "Metal is Apple's; RUSSET_METAL=simulator makes a simulated GPU this device";
  }
#endif
  try {
    runtime::register_device(DeviceType::mps, make_driver());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const bool registered = [] {
  std::string reason = register_driver();
  if (!reason.empty()) runtime::register_unavailable(DeviceType::mps, std::move(reason));
  return true;
}();

}  // namespace
}  // namespace russet::metal
