#pragma once
// RangeSet: a set of bytes, by address or by offset, as the ranges that they form.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace russet::base {

/// Bytes [begin, end).
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  std::size_t bytes() const { return end - begin; }
  const void* address() const { return reinterpret_cast<const void*>(begin); }  // NOLINT: of what range_of() was given
};

inline ByteRange range_of(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  return {address, address + bytes};
}

/// The ranges are ascending, and neither overlap nor touch. They are meant to be few: adding and removing move those
/// that follow. An empty range adds and removes nothing, and overlaps nothing.
class RangeSet {
 public:
  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  void add(ByteRange range);
  void remove(ByteRange range);

  /// Whether any byte of the range is in the set.
  bool overlaps(ByteRange range) const;
  /// Whether all bytes of the range are.
  bool covers(ByteRange range) const;
  /// Those parts of the range that are in the set.
  std::vector<ByteRange> parts_of(ByteRange range) const;

  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace russet::base
