#pragma once
// What an entry of an index names.
#include <cstdint>

namespace russet::ops {

/// The position that an entry of an index names on an axis of `size`; -1 for none.
constexpr std::int64_t named_position(std::int64_t index, std::int64_t size, bool from_end) {
  if (from_end && index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

}  // namespace russet::ops
