#include "device/gpu/vendor_library.h"

namespace russet::gpu {

KernelPtr make_library_kernel(const GpuContext& context, std::string name, std::shared_ptr<const Pipeline> call,
                              std::vector<Region> regions, std::size_t scratch_bytes) {
  Call launch;
  launch.function = std::make_shared<Function>(std::move(call), name);
  launch.regions = std::move(regions);
  return std::make_unique<GpuKernel>(context, std::move(name), std::vector<Call>{std::move(launch)}, scratch_bytes);
}

}  // namespace russet::gpu
