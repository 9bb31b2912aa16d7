#pragma once

namespace russet::simulator {

/// Fills the table of a checked module with the checks on accesses and arithmetic.
void fill_hooks(void** table);

}  // namespace russet::simulator
