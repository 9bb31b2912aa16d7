#pragma once
// A GPU that plans are made for and that runs nothing: what `russet plan` takes where there is no such GPU.
#include <memory>
#include <vector>

#include "device/gpu/vendor_library.h"

namespace russet::gpu {

/// A driver whose target chooses kernels as for a GPU with these properties and libraries.
std::unique_ptr<Driver> make_planning_driver(DeviceType device, Properties properties,
                                             std::vector<std::unique_ptr<const VendorLibrary>> libraries = {});

/// Apple's chip of this name (russet/chips.h), the first if none is named. Throws ValueError if there is no model of
/// it.
std::unique_ptr<Driver> make_mps_planner(std::string_view chip);

}  // namespace russet::gpu
