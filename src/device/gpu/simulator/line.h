#pragma once
// Where a report points: lines of kernel text, and threadgroups.
#include <string>

#include "device/gpu/kernels/prelude/simulator/abi.h"

namespace russet::simulator {

/// "line 12" of the text that the code before return address `site` was compiled from; reads the debug information of
/// its module, which takes some milliseconds the first time. The address itself where there is none.
std::string line_of(const void* site);

/// "(3, 0, 0)".
std::string group_name(const russet_simulator::Threadgroup& threadgroup);

}  // namespace russet::simulator
