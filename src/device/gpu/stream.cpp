#include "device/gpu/stream.h"

#include <algorithm>

namespace russet::gpu {

bool Stream::overlaps(const std::vector<Range>& ranges, const Range& range) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), range.begin,
                       [](const std::byte* begin, const Range& other) { return std::less<>()(begin, other.end); });
  return after != ranges.end() && std::less<>()(after->begin, range.end);
}

void Stream::add(std::vector<Range>& ranges, Range range) {
  const auto first =
      std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                       [](const Range& other, const std::byte* begin) { return std::less<>()(other.end, begin); });
  auto last = first;
  for (; last != ranges.end() && std::less_equal<>()(last->begin, range.end); ++last) {
    range.begin = std::min(range.begin, last->begin, std::less<>());
    range.end = std::max(range.end, last->end, std::less<>());
  }
  if (first == last) {
    ranges.insert(first, range);
  } else {
    *first = range;
    ranges.erase(first + 1, last);
  }
}

void Stream::launch(const Launch& launch) {
  const auto range_of = [](const Binding& binding) { return Range{binding.address, binding.address + binding.bytes}; };
  const bool conflicts = std::any_of(launch.buffers.begin(), launch.buffers.end(), [&](const Binding& binding) {
    if (binding.bytes == 0) return false;
    return overlaps(written_, range_of(binding)) || (binding.writes && overlaps(read_, range_of(binding)));
  });
  if (conflicts) {
    driver_.barrier();
    ++barriers_;
    read_.clear();
    written_.clear();
  }
  for (const Binding& binding : launch.buffers) {
    if (binding.bytes != 0) add(binding.writes ? written_ : read_, range_of(binding));
  }
  driver_.launch(launch);
  ++launches_;
}

void Stream::commit() { driver_.commit(); }

void Stream::wait() {
  driver_.synchronize();
  read_.clear();
  written_.clear();
}

}  // namespace russet::gpu
