#pragma once
// AllocationWatch: what the whole process asks the system for, seen by taking malloc's and mmap's place (GNU libc).
#include <cstddef>
#include <cstdint>
#include <string>

namespace russet {

/// While one lives, allocations of more than `above` bytes are counted, whichever thread or library makes them, but for
/// OpenBLAS's tables of what its threads do.
/// One at a time.
class AllocationWatch {
 public:
  explicit AllocationWatch(std::size_t above = 4096);
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  std::uint64_t count() const;
  /// Of the first one: its size and the calls that led to it, a line each. Empty if there was none.
  std::string first() const;
};

}  // namespace russet
