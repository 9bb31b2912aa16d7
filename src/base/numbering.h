#pragma once
// Numbering: which number a walk gave each object that it met. With this, the objects themselves carry no marks, and
// threads walk one graph side by side. A hash table with open addressing, which keeps its memory from walk to walk.
#include <cstdint>
#include <vector>

namespace russet::base {

template <class T>
class Numbering {
 public:
  /// Forgets all objects; the memory stays.
  void clear() {
    count_ = 0;
    if (++generation_ != 0) return;
    entries_.assign(entries_.size(), {});  // the generations have come round
    generation_ = 1;
  }

  /// The object's number: 0, 1, 2, ... in the order in which objects are met.
  std::int32_t number_of(const T* object) {
    if (2 * (static_cast<std::size_t>(count_) + 1) > entries_.size()) grow();
    Entry& entry = entries_[place_of(object)];
    if (entry.generation != generation_) entry = {object, generation_, count_++};
    return entry.number;
  }
  /// Likewise, or -1 for one that was not met.
  std::int32_t find(const T* object) const {
    if (count_ == 0) return -1;
    const Entry& entry = entries_[place_of(object)];
    return entry.generation == generation_ ? entry.number : -1;
  }
  std::int32_t size() const { return count_; }

 private:
  struct Entry {
    const T* object = nullptr;
    std::uint32_t generation = 0;
    std::int32_t number = -1;
  };

  /// Where the object is, or would be.
  std::size_t place_of(const T* object) const {
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;
    const std::size_t mask = entries_.size() - 1;
    std::size_t place = (reinterpret_cast<std::uintptr_t>(object) * golden_ratio) >> 32 & mask;
    while (entries_[place].generation == generation_ && entries_[place].object != object) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    const std::vector<Entry> before = std::move(entries_);
    entries_.assign(before.empty() ? 256 : 2 * before.size(), {});
    for (const Entry& entry : before) {
      if (entry.generation == generation_) entries_[place_of(entry.object)] = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two
  std::uint32_t generation_ = 1;
  std::int32_t count_ = 0;
};

}  // namespace russet::base
