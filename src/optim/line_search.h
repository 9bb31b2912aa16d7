#pragma once
// A step length that fulfils the strong Wolfe conditions: the loss falls enough, and its slope has flattened.
#include <russet/tensor.h>
#include <cstdint>
#include <functional>

namespace russet::optim {

/// A place on the line x + t d: the loss there, its gradient, and its slope along d.
struct LinePoint {
  double t = 0;
  double loss = 0;
  Tensor gradient;
  double slope = 0;
};

/// From `start` (t = 0), whose slope is negative; `first`: the length that is tried first; `largest_change`: the
/// largest element of d; at most max_ls further evaluations.
LinePoint strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start, double first,
                       double largest_change, double tolerance_change, std::int64_t max_ls);

}  // namespace russet::optim
