// RangeSet against a set of single bytes, on random histories.
#include "base/range_set.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace russet::base {
namespace {

constexpr std::uintptr_t space = 48;
using Bytes = std::bitset<space>;

Bytes bytes_of(ByteRange range) {
  Bytes bytes;
  for (std::uintptr_t i = range.begin; i < range.end; ++i) bytes.set(i);
  return bytes;
}

template <class Ranges>
Bytes all_of(const Ranges& ranges) {
  Bytes bytes;
  for (const ByteRange range : ranges) bytes |= bytes_of(range);
  return bytes;
}

void expect_ordered(const RangeSet& set) {
  std::uintptr_t behind = 0;
  for (const ByteRange range : set) {
    EXPECT_LT(range.begin, range.end);
    EXPECT_TRUE(behind == 0 || range.begin > behind) << range.begin << " touches what ends at " << behind;
    behind = range.end;
  }
}

TEST(RangeSet, IsTheSetOfItsBytes) {
  std::mt19937 random(1);
  for (int history = 0; history < 200; ++history) {
    RangeSet set;
    Bytes bytes;
    for (int i = 0; i < 40; ++i) {
      const auto [begin, end] = std::minmax({random() % space, random() % space});
      const ByteRange range{begin, end};
      const Bytes asked = bytes_of(range);
      EXPECT_EQ(set.overlaps(range), (bytes & asked).any());
      EXPECT_EQ(set.covers(range), (bytes & asked) == asked);
      EXPECT_EQ(all_of(set.parts_of(range)), bytes & asked);
      if (random() % 2 == 0) {
        set.add(range);
        bytes |= asked;
      } else {
        set.remove(range);
        bytes &= ~asked;
      }
      ASSERT_EQ(all_of(set), bytes);
      EXPECT_EQ(set.empty(), bytes.none());
      expect_ordered(set);
    }
  }
}

TEST(RangeSet, KnowsMemoryByItsAddress) {
  const int values[4]{};
  RangeSet set;
  set.add(range_of(values, sizeof(int)));
  EXPECT_TRUE(set.overlaps(range_of(values, sizeof(values))));
  EXPECT_FALSE(set.overlaps(range_of(values + 1, sizeof(int))));
  EXPECT_EQ(set.begin()->address(), values);
  EXPECT_EQ(set.begin()->bytes(), sizeof(int));
}

}  // namespace
}  // namespace russet::base
