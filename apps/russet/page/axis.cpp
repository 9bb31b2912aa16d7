#include "page/axis.h"

#include <algorithm>
#include <cmath>

namespace russet::app {
namespace {

constexpr std::size_t most_ticks = 6;

/// Steps of 1, 2 or 5 times a power of ten.
std::vector<double> even_ticks(double low, double high) {
  const double span = std::max(high - low, 1e-12);
  double step = std::pow(10.0, std::floor(std::log10(span / 5)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (span / step > static_cast<double>(most_ticks)) step *= factor;
  }
  std::vector<double> found;
  for (double value = std::ceil(low / step) * step; value <= high + step * 1e-6; value += step) {
    found.push_back(std::abs(value) < step * 1e-6 ? 0 : value);
  }
  return found;
}

/// 1, 2 and 5 times the powers of ten, or these alone, or every second one, ...
std::vector<double> logarithmic_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  std::vector<double> found;
  for (int power = first; power <= last; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) found.push_back(factor * std::pow(10.0, power));
  }
  const auto inside = [&](double value) { return value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9); };
  std::erase_if(found, [&](double value) { return !inside(value); });
  if (found.size() <= most_ticks) return found;
  const int every = std::max(1, (last - first) / static_cast<int>(most_ticks));
  found.clear();
  for (int power = first; power <= last; power += every) {
    if (inside(std::pow(10.0, power))) found.push_back(std::pow(10.0, power));
  }
  return found;
}

}  // namespace

double Axis::at(double value, double from, double to) const {
  if (!(high > low)) return (from + to) / 2;
  const double share = scale == Scale::linear ? (value - low) / (high - low)
                                              : (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return from + share * (to - from);
}

std::vector<double> Axis::ticks() const {
  return scale == Scale::linear ? even_ticks(low, high) : logarithmic_ticks(low, high);
}

}  // namespace russet::app
