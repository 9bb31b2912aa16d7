#pragma once
// The version of russet: said here and nowhere else (CMake reads version_string from this file).
#include <string_view>

namespace russet {

/// The version of the headers that a program was compiled with.
inline constexpr std::string_view version_string = "0.1.0";

/// The version of the library that the program runs with.
std::string_view version();

}  // namespace russet
