#pragma once
// Which taps of a window meet which positions, along one axis.
#include <cstdint>
#include <vector>

#include "ops/attributes.h"

namespace russet::cpu {

/// The taps that meet one position: tap, tap + tap_step, ..., `count` of them, and the positions of the other side that
/// they meet there: from, from + from_step, ...
struct TapRun {
  std::int64_t tap = 0, tap_step = 1;
  std::int64_t from = 0, from_step = 0;
  std::int64_t count = 0;
};

/// The windows at which one tap lies inside: first, first + 1, ..., `count` of them, and the position where the tap of
/// the first window lies.
struct WindowRun {
  std::int64_t first = 0, from = 0, count = 0;
};

/// For each window along `axis` (0: height, 1: width): its taps that lie inside `large` elements.
std::vector<TapRun> gathered_taps(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                  std::int64_t small);
/// For each of the `large` elements: the taps through which windows (`small` of them) read it.
std::vector<TapRun> scattered_taps(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                   std::int64_t small);
/// For each tap: the windows (of `small`) at which it lies inside `large` elements.
std::vector<WindowRun> tap_windows(const ops::Window& window, int axis, std::int64_t taps, std::int64_t large,
                                   std::int64_t small);

}  // namespace russet::cpu
