#pragma once
// Which bytes of device memory have never been written: intervals of addresses, few at any time.
#include <cstddef>
#include <cstdint>
#include <map>

namespace russet::simulator {

class Uninitialised {
 public:
  void add(std::uintptr_t begin, std::uintptr_t end);
  void remove(std::uintptr_t begin, std::uintptr_t end);
  bool meets(std::uintptr_t begin, std::uintptr_t end) const;

  /// Calls body(begin, end) for each part of [begin, end) that is uninitialised, in order.
  template <class Body>
  void for_each(std::uintptr_t begin, std::uintptr_t end, const Body& body) const {
    auto entry = intervals_.upper_bound(begin);
    if (entry != intervals_.begin()) --entry;
    for (; entry != intervals_.end() && entry->first < end; ++entry) {
      const std::uintptr_t low = entry->first < begin ? begin : entry->first;
      const std::uintptr_t high = entry->second > end ? end : entry->second;
      if (low < high) body(low, high);
    }
  }

 private:
  std::map<std::uintptr_t, std::uintptr_t> intervals_;  // begin -> end, disjoint, none touching the next
};

}  // namespace russet::simulator
