#pragma once
// A chart's axis: where a value lies, and where the labels are.
#include <cstdint>
#include <vector>

namespace russet::app {

enum class Scale : std::uint8_t { linear, logarithmic };

struct Axis {
  double low = 0;
  double high = 1;
  Scale scale = Scale::linear;  // logarithmic: low is above 0

  /// The place of `value` between `from` (low) and `to` (high).
  double at(double value, double from, double to) const;
  /// Round numbers between low and high, about five of them.
  std::vector<double> ticks() const;
};

}  // namespace russet::app
