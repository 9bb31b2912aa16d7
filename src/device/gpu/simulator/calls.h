#pragma once
// What compiled kernels call in the simulator.

namespace russet::simulator {

/// Fills a module's table (prelude/simulator/trampolines.h) with our functions; `checked`: with the checks that
/// instrumented code calls as well.
void fill_table(void** table, bool checked);

}  // namespace russet::simulator
