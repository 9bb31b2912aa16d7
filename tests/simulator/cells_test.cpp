// Records of accesses: the short way finds and leaves what the long one does, on random histories of threadgroups.
#include <gtest/gtest.h>
#include <array>
#include <atomic>
#include <random>
#include <vector>

#include "device/gpu/simulator/checked/cell.h"

namespace russet::simulator {
namespace {

constexpr std::uint32_t threads = 96;

/// What is told apart of a record: of reads by many it is of no interest who came last, of reads by lanes of one
/// simdgroup only which.
ShadowCell told_apart(ShadowCell cell) {
  if ((cell & cell_divided) != 0 || (cell & cell_many) == 0) return cell;
  const std::uint32_t forgotten = (cell & cell_across) != 0 ? 1023u : 31u;
  return cell & ~(forgotten << cell_thread_shift);
}

/// The time of a threadgroup, in memory of the group (no owners) or of the device.
class Time {
 public:
  explicit Time(bool device) : device_(device) {
    if (!device) return;
    owners_[next_] = ~0u;
    clock.first = next_++;
    clock.owners = owners_.data();
  }
  void begin_group() {
    ++clock.serial;
    barrier();
    if (!device_) clock.first = clock.base;
  }
  void barrier() {
    clock.base = fresh();
    clock.now.fill(clock.base);
  }
  void simdgroup_barrier(std::uint32_t simdgroup) { clock.now[simdgroup] = fresh(); }

  IntervalClock clock;

 private:
  std::uint32_t fresh() {
    owners_[next_] = clock.serial;
    return next_++;
  }
  bool device_;
  std::uint32_t next_ = 1;
  std::array<std::atomic<std::uint32_t>, 1024> owners_{};
};

void run_history(unsigned seed, bool device) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
  Time time(device);
  time.begin_group();
  std::array<ShadowCell, 3> cells{};
  unsigned quick = 0;
  for (int step = 0; step < 600; ++step) {
    const std::uint32_t what = pick(40);
    if (what == 0) time.begin_group();
    if (what == 1) time.barrier();
    if (what == 2) time.simdgroup_barrier(pick(threads / 32));
    ShadowCell& cell = cells[pick(3)];
    const Toucher who{pick(4) == 0 ? pick(threads) : pick(3), pick(3) == 0, pick(8) == 0};
    const ShadowCell before = cell;
    ShadowCell now = 0;
    const bool common = touch_quickly(before, record_of(time.clock, who), time.clock, who, now);
    ShadowCell old;
    const Conflict conflict = touch(cell, time.clock, who, old);
    if (!common) continue;
    ++quick;
    ASSERT_EQ(conflict, Conflict::none) << "seed " << seed << ", step " << step;
    ASSERT_EQ(told_apart(now), told_apart(cell)) << "seed " << seed << ", step " << step;
    cell = now;
  }
  EXPECT_GT(quick, 100u);
}

TEST(Cells, OfTheGroupAreTouchedAlikeByBothWays) {
  for (unsigned seed = 0; seed < 400; ++seed) run_history(seed, false);
}

TEST(Cells, OfTheDeviceAreTouchedAlikeByBothWays) {
  for (unsigned seed = 0; seed < 400; ++seed) run_history(seed, true);
}

}  // namespace
}  // namespace russet::simulator
