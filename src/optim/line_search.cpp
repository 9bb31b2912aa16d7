// Nocedal, Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6.
#include "line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace russet::optim {
namespace {

constexpr double sufficient_decrease = 1e-4;
constexpr double flat_enough = 0.9;

/// Where the cubic through two points with their slopes is least, between `low` and `high`.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const auto& [left, right] = a.t <= b.t ? std::pair(&a, &b) : std::pair(&b, &a);
  const double d1 = left->slope + right->slope - 3 * (left->loss - right->loss) / (left->t - right->t);
  const double square = d1 * d1 - left->slope * right->slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double place =
      right->t - (right->t - left->t) * ((right->slope + d2 - d1) / (right->slope - left->slope + 2 * d2));
  return std::min(std::max(place, low), high);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, std::int64_t max_ls)
      : evaluate_(evaluate), start_(start), max_ls_(max_ls) {}

  LinePoint run(double first, double largest_change, double tolerance_change) {
    const bool done = find_bracket(first);
    order();
    if (!done) narrow(largest_change, tolerance_change);
    return low_;
  }

 private:
  bool falls_enough(const LinePoint& point) const {
    return point.loss <= start_.loss + sufficient_decrease * point.t * start_.slope;
  }
  bool is_flat(const LinePoint& point) const { return std::abs(point.slope) <= -flat_enough * start_.slope; }

  /// Longer and longer steps, until a minimum lies between two of them (false), or one will do (true).
  bool find_bracket(double first) {
    LinePoint before = start_;
    LinePoint now = evaluate_(first);
    for (; steps_ < max_ls_; ++steps_) {
      low_ = before;
      high_ = now;
      if (!falls_enough(now) || (steps_ > 1 && now.loss >= before.loss)) return false;
      if (is_flat(now)) {
        low_ = now;
        return true;
      }
      if (now.slope >= 0) return false;
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, evaluate_(next));
    }
    low_ = start_;
    high_ = now;
    return false;
  }

  void order() {
    if (high_.loss < low_.loss) std::swap(low_, high_);
  }

  /// The next length to try between the two; moved off the ends if the last tries did not get away from them.
  double inner_length() {
    const auto [least, most] = std::minmax(low_.t, high_.t);
    const double margin = 0.1 * (most - least);
    double t = cubic_minimum(low_, high_, least, most);
    const bool at_end = std::min(most - t, t - least) < margin;
    const bool moved = at_end && (stalled_ || t >= most || t <= least);
    if (moved) t = std::abs(t - most) < std::abs(t - least) ? most - margin : least + margin;
    stalled_ = at_end && !moved;
    return t;
  }

  void narrow(double largest_change, double tolerance_change) {
    for (; steps_ < max_ls_; ++steps_) {
      if (std::abs(high_.t - low_.t) * largest_change < tolerance_change) return;
      const LinePoint now = evaluate_(inner_length());
      if (!falls_enough(now) || now.loss >= low_.loss) {
        high_ = now;
        order();
        continue;
      }
      const bool done = is_flat(now);
      if (!done && now.slope * (high_.t - low_.t) >= 0) high_ = low_;
      low_ = now;
      if (done) return;
    }
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  std::int64_t max_ls_;
  std::int64_t steps_ = 0;
  LinePoint low_;
  LinePoint high_;
  bool stalled_ = false;
};

}  // namespace

LinePoint strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start, double first,
                       double largest_change, double tolerance_change, std::int64_t max_ls) {
  return Search(evaluate, start, max_ls).run(first, largest_change, tolerance_change);
}

}  // namespace russet::optim
