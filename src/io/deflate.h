#pragma once
// What holds of deflate (RFC 1951), whatever file it is in.
#include <cstdint>

namespace russet::io {

/// The most bytes that one of deflate's gives.
inline constexpr std::int64_t max_inflation = 1032;

}  // namespace russet::io
