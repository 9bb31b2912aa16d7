#pragma once
// Runs the threadgroups of one dispatch on the cores of this computer.
#include "machine.h"

namespace russet::simulator {

/// Addresses that a kernel gets for its bindings, by index.
struct Bound {
  std::vector<void*> buffers;
  const void* values = nullptr;
};

/// Runs threadgroups first, first + 1, ... last - 1 of the grid, numbered along x, then y, then z.
void run_groups(const Dispatch& dispatch, const Bound& bound, std::uint64_t first, std::uint64_t last);

/// The number of threadgroups of a grid.
std::uint64_t group_count(const Dispatch& dispatch);

}  // namespace russet::simulator
