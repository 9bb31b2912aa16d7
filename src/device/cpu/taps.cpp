#include "device/cpu/taps.h"

namespace russet::cpu {
namespace {

/// Taps and positions are arithmetic progressions, so the first two of each give the steps.
void add(TapRun& run, std::int64_t tap, std::int64_t from) {
  if (run.count == 0) {
    run.tap = tap;
    run.from = from;
  } else if (run.count == 1) {
    run.tap_step = tap - run.tap;
    run.from_step = from - run.from;
  }
  ++run.count;
}

}  // namespace

std::vector<TapRun> gathered_taps(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                  std::int64_t small) {
  const auto i = static_cast<std::size_t>(axis);
  std::vector<TapRun> runs(static_cast<std::size_t>(small));
  for (std::int64_t position = 0; position < small; ++position) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t from = position * window.stride[i] - window.padding[i] + tap * window.dilation[i];
      if (from >= 0 && from < large) add(runs[static_cast<std::size_t>(position)], tap, from);
    }
  }
  return runs;
}

std::vector<TapRun> scattered_taps(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                   std::int64_t small) {
  const auto i = static_cast<std::size_t>(axis);
  std::vector<TapRun> runs(static_cast<std::size_t>(large));
  for (std::int64_t position = 0; position < large; ++position) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t distance = position + window.padding[i] - tap * window.dilation[i];
      if (distance < 0 || distance % window.stride[i] != 0 || distance / window.stride[i] >= small) continue;
      add(runs[static_cast<std::size_t>(position)], tap, distance / window.stride[i]);
    }
  }
  return runs;
}

std::vector<WindowRun> tap_windows(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                   std::int64_t small) {
  const auto i = static_cast<std::size_t>(axis);
  std::vector<WindowRun> runs(static_cast<std::size_t>(taps));
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    WindowRun& run = runs[static_cast<std::size_t>(tap)];
    for (std::int64_t position = 0; position < small; ++position) {
      const std::int64_t from = position * window.stride[i] - window.padding[i] + tap * window.dilation[i];
      if (from < 0 || from >= large) continue;
      if (run.count++ > 0) continue;
      run.first = position;
      run.from = from;
    }
  }
  return runs;
}

}  // namespace russet::cpu
