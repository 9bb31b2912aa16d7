// The device cuda makes itself known.
#include "device/gpu/cuda/driver.h"

namespace russet::cuda {
namespace {

const bool registered = [] {
  runtime::register_device(DeviceType::cuda, []() -> std::unique_ptr<runtime::DeviceDriver> { return make_driver(); });
  return true;
}();

}  // namespace
}  // namespace russet::cuda
