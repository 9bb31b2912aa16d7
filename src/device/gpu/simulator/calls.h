#pragma once
// What compiled kernels call in the simulator.

namespace russet::simulator {

/// Fills a module's table (prelude/simulator/trampolines.h) with our functions.
void fill_table(void** table);

}  // namespace russet::simulator
