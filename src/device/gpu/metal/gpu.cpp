#include "device/gpu/metal/gpu.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::metal {
namespace {

constexpr int oldest_macos = 14;
constexpr int oldest_family = 7;
constexpr int newest_family = 10;

int family_of(MTL::Device& device) {
  for (int family = newest_family; family >= oldest_family; --family) {
    if (device.supportsFamily(static_cast<MTL::GPUFamily>(MTL::GPUFamilyApple1 + family - 1))) return family;
  }
  return 0;
}

}  // namespace

Gpu find_gpu() {
  const PoolScope pool;
  Gpu gpu;
  gpu.device = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  if (!gpu.device) throw DeviceError("Metal finds no GPU");
  MTL::Device& device = *gpu.device.get();
  gpu.name = text(device.name());
  const NS::ProcessInfo* const process = NS::ProcessInfo::processInfo();
  gpu.system = text(process->operatingSystemVersionString());
  gpu.macos = static_cast<int>(process->operatingSystemVersion().majorVersion);
  if (gpu.macos < oldest_macos) {
    throw DeviceError(fmt::format("this is macOS {}; macOS {} or newer is needed", gpu.macos, oldest_macos));
  }
  gpu.family = family_of(device);
  if (gpu.family == 0 || !device.hasUnifiedMemory()) {
    throw DeviceError(fmt::format("{} is not Apple silicon (GPU family Apple{} or newer)", gpu.name, oldest_family));
  }
  gpu.max_buffer = device.maxBufferLength() / page * page;
  gpu.working_set = device.recommendedMaxWorkingSetSize();
  gpu.group_memory = device.maxThreadgroupMemoryLength();
  gpu.max_threads = device.maxThreadsPerThreadgroup().width;
  device.setShouldMaximizeConcurrentCompilation(true);  // macOS 13.3
  return gpu;
}

}  // namespace russet::metal
