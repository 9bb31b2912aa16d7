#pragma once
// A GPU that plans are made for and that runs nothing: what `russet plan` takes for mps where there is no Apple GPU.
#include <memory>
#include <string_view>

#include "device/gpu/launch.h"

namespace russet::gpu {

/// A driver whose target chooses kernels as for a chip (russet/chips.h), the first if none is named. Throws
/// ValueError if there is no model of it.
std::unique_ptr<Driver> make_planning_driver(std::string_view chip);

}  // namespace russet::gpu
