#include "device/gpu/cuda/context.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::cuda {
namespace {

/// Ampere's: the first with bfloat16.
constexpr int oldest_capability = 80;

}  // namespace

Context::Context() {
  check(api().init(0), "starting CUDA");
  int count = 0;
  check(api().device_get_count(&count), "counting GPUs");
  if (count == 0) throw DeviceError("CUDA finds no GPU");
  check(api().driver_get_version(&driver_version_), "asking for the driver's version");
  check(api().device_get(&device_, 0), "asking for the first GPU");
  char name[256] = {};
  check(api().device_get_name(name, sizeof(name), device_), "asking for the GPU's name");
  name_ = name;
  check(api().device_total_mem(&memory_bytes_, device_), "asking for the GPU's memory");
  capability_ = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (capability_ < oldest_capability) {
    throw DeviceError(fmt::format("{} has compute capability {}.{}; {}.{} or newer is needed", name_, capability_ / 10,
                                  capability_ % 10, oldest_capability / 10, oldest_capability % 10));
  }
  check(api().device_primary_ctx_retain(&context_, device_), "making the GPU's context");
  enter();
}

int Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  check(api().device_get_attribute(&value, which, device_), "asking the GPU for a property");
  return value;
}

}  // namespace russet::cuda
