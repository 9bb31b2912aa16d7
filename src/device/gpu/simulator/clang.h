#pragma once
// Compiles kernel text with clang into shared objects, which are kept on disk by their content.
#include <filesystem>
#include <string_view>

namespace russet::simulator {

/// The shared object for a text, compiled with the simulator's prelude if the cache does not hold it. The cache is
/// bounded, see base/disk_cache.h: load the object soon. Any number of threads and processes may call at once. Throws
/// DeviceError with the compiler's words, or if there is no clang.
std::filesystem::path compiled(std::string_view text, bool checked);

}  // namespace russet::simulator
