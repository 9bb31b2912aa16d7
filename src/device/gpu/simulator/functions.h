#pragma once
// The rounded functions of precise::, which kernels call by the module's table.

namespace russet::simulator {

/// Fills their places in a module's table (prelude/simulator/trampolines.h). `coarse`: with functions that are no
/// better than Metal documents; else with those of the C library.
void fill_functions(void** table, bool coarse);

}  // namespace russet::simulator
