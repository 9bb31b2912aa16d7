#pragma once
// What all devices say of an index that names nothing.
#include <cstdint>
#include <string_view>

namespace russet::ops {

/// Throws IndexError: "take: index 7 is out of range for axis 1 of size 3 (number 4 of 12)". `place`: which of the
/// `count` entries of the index.
[[noreturn]] void throw_out_of_range(std::string_view function, std::int64_t index, int axis, std::int64_t size,
                                     std::int64_t place, std::int64_t count);

/// The position that an entry of an index names on an axis of `size`; -1 for none.
constexpr std::int64_t named_position(std::int64_t index, std::int64_t size, bool from_end) {
  if (from_end && index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

}  // namespace russet::ops
