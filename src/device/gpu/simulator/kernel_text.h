#pragma once
// What the simulator looks for in a kernel's text, and adds to it, before clang reads it.
#include <string>
#include <string_view>

namespace russet::simulator {

/// Throws DeviceError if a variable in threadgroup memory is declared by other means than GROUP_MEMORY: to the
/// simulator it would be each thread's own.
void check_group_memory(std::string_view text);

/// The text of a checked kernel: local arrays and structs that are declared without a value are watched, and rounds of
/// loops are counted (prelude/simulator/watch.h). Lines stay where they are.
std::string watched_text(std::string_view text);

}  // namespace russet::simulator
