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

std::unique_ptr<runtime::DeviceDriver> make() {
#ifndef __APPLE__
  const char* const wanted = std::getenv("RUSSET_METAL");
  if (wanted == nullptr || std::string_view(wanted) != "simulator") {
    throw DeviceError("Metal is Apple's; RUSSET_METAL=simulator makes a simulated GPU this device");
  }
#endif
  return make_driver();
}

const bool registered = [] {
  runtime::register_device(DeviceType::mps, make);
  return true;
}();

}  // namespace
}  // namespace russet::metal
