#include "base/range_set.h"

namespace russet::base {
namespace {

/// The first of the ranges that ends behind `address`.
template <class Ranges>
auto first_behind(Ranges& ranges, std::uintptr_t address) {
  return std::upper_bound(ranges.begin(), ranges.end(), address,
                          [](std::uintptr_t value, const ByteRange& range) { return value < range.end; });
}

}  // namespace

void RangeSet::add(ByteRange range) {
  if (range.begin >= range.end) return;
  // Those that end or begin where this one begins or ends become one with it.
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                      [](const ByteRange& own, std::uintptr_t value) { return own.end < value; });
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (first == last) {
    ranges_.insert(first, range);
  } else {
    *first = range;
    ranges_.erase(first + 1, last);
  }
}

void RangeSet::remove(ByteRange range) {
  if (range.begin >= range.end) return;
  auto at = first_behind(ranges_, range.begin);
  if (at != ranges_.end() && at->begin < range.begin) {
    const std::uintptr_t end = at->end;
    at->end = range.begin;
    ++at;
    if (end > range.end) {
      ranges_.insert(at, {range.end, end});
      return;
    }
  }
  auto last = at;
  while (last != ranges_.end() && last->end <= range.end) ++last;
  if (last != ranges_.end()) last->begin = std::max(last->begin, range.end);
  ranges_.erase(at, last);
}

bool RangeSet::overlaps(ByteRange range) const {
  const auto at = first_behind(ranges_, range.begin);
  return at != ranges_.end() && range.begin < range.end && at->begin < range.end;
}

bool RangeSet::covers(ByteRange range) const {
  const auto at = first_behind(ranges_, range.begin);
  return range.begin >= range.end || (at != ranges_.end() && at->begin <= range.begin && range.end <= at->end);
}

std::vector<ByteRange> RangeSet::parts_of(ByteRange range) const {
  std::vector<ByteRange> parts;
  if (range.begin >= range.end) return parts;
  for (auto at = first_behind(ranges_, range.begin); at != ranges_.end() && at->begin < range.end; ++at) {
    parts.push_back({std::max(at->begin, range.begin), std::min(at->end, range.end)});
  }
  return parts;
}

}  // namespace russet::base
