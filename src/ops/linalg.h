#pragma once
// What all devices agree on where a factorisation leaves a choice.
#include <algorithm>
#include <cmath>
#include <span>

namespace russet::ops {

/// Eigenvectors and singular vectors are only given up to their sign. So that every device finds the same ones, the
/// first element of some size, against the largest, is positive. Whether that asks for the other sign.
template <class T>
bool points_backward(std::span<const T> vector) {
  constexpr double share = 0.3;  // not a ratio that small whole numbers make, at which rounding would decide
  double largest = 0;
  for (const T element : vector) largest = std::max(largest, std::abs(static_cast<double>(element)));
  for (const T element : vector) {
    if (std::abs(static_cast<double>(element)) >= share * largest) return element < 0;
  }
  return false;
}

}  // namespace russet::ops
