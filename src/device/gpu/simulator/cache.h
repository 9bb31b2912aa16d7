#pragma once
// Where compiled kernels are kept, shared by all processes of a user.
#include "base/disk_cache.h"

namespace russet::simulator {

/// A folder in base::cache_folder().
std::filesystem::path cache_folder();

/// What the folder may hold, in bytes.
inline constexpr std::uint64_t cache_limit = std::uint64_t{1} << 30;

/// In cache_folder(), which may be another one the next time.
base::DiskCache cache(std::uint64_t limit = cache_limit);

}  // namespace russet::simulator
