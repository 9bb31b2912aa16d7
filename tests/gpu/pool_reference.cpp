#include "gpu/pool_reference.h"

#include <cmath>

namespace russet::gputest {
namespace {

/// Calls `visit(window, plane, y, x)` for each window, of which plane of images and channels it is, and where it
/// begins.
template <class Visit>
void for_each_window(const ops::Window& window, const Shape& small, const Visit& visit) {
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < small[0] * small[1]; ++plane) {
    for (std::int64_t i = 0; i < small[2]; ++i) {
      for (std::int64_t j = 0; j < small[3]; ++j) {
        visit(at++, plane, i * window.stride[0] - window.padding[0], j * window.stride[1] - window.padding[1]);
      }
    }
  }
}

/// Where a tap of a window lies in `large`; -1 if in the padding.
std::int64_t place(const ops::Window& window, const Shape& large, std::int64_t plane, std::int64_t y, std::int64_t x,
                   int tap) {
  const std::int64_t row = y + std::int64_t{tap / window.kernel[1]} * window.dilation[0];
  const std::int64_t column = x + std::int64_t{tap % window.kernel[1]} * window.dilation[1];
  if (row < 0 || row >= large[2] || column < 0 || column >= large[3]) return -1;
  return (plane * large[2] + row) * large[3] + column;
}

}  // namespace

std::vector<double> positions_of_maxima(const ops::Window& window, const Shape& large, const Shape& small,
                                        const std::vector<double>& values) {
  constexpr double none = 255;
  std::vector<double> positions(static_cast<std::size_t>(numel(small)), none);
  for_each_window(window, small, [&](std::size_t at, std::int64_t plane, std::int64_t y, std::int64_t x) {
    double largest = 0;
    for (int tap = 0; tap < window.kernel[0] * window.kernel[1]; ++tap) {
      const std::int64_t from = place(window, large, plane, y, x, tap);
      if (from < 0) continue;
      const double value = values[static_cast<std::size_t>(from)];
      const bool exceeds = value > largest || (std::isnan(value) && !std::isnan(largest));
      if (positions[at] != none && !exceeds) continue;
      positions[at] = tap;
      largest = value;
    }
  });
  return positions;
}

std::vector<double> spread(const ops::Window& window, const Shape& large, const Shape& small,
                           const std::vector<double>& positions, const std::vector<double>& values) {
  std::vector<double> result(static_cast<std::size_t>(numel(large)), 0.0);
  for_each_window(window, small, [&](std::size_t at, std::int64_t plane, std::int64_t y, std::int64_t x) {
    const std::int64_t to = place(window, large, plane, y, x, static_cast<int>(positions[at]));
    if (to >= 0) result[static_cast<std::size_t>(to)] += values[at];
  });
  return result;
}

}  // namespace russet::gputest
