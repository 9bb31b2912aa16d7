#include "initialised.h"

#include <algorithm>

namespace russet::simulator {

void Uninitialised::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= end) return;
  auto entry = intervals_.upper_bound(begin);
  if (entry != intervals_.begin() && std::prev(entry)->second >= begin) --entry;
  while (entry != intervals_.end() && entry->first <= end) {
    begin = std::min(begin, entry->first);
    end = std::max(end, entry->second);
    entry = intervals_.erase(entry);
  }
  intervals_[begin] = end;
}

void Uninitialised::remove(std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= end) return;
  auto entry = intervals_.upper_bound(begin);
  if (entry != intervals_.begin()) --entry;
  while (entry != intervals_.end() && entry->first < end) {
    const auto [low, high] = *entry;
    if (high <= begin) {
      ++entry;
      continue;
    }
    entry = intervals_.erase(entry);
    if (low < begin) intervals_[low] = begin;
    if (high > end) intervals_[end] = high;
  }
}

bool Uninitialised::meets(std::uintptr_t begin, std::uintptr_t end) const {
  bool met = false;
  for_each(begin, end, [&](std::uintptr_t, std::uintptr_t) { met = true; });
  return met;
}

}  // namespace russet::simulator
