#include "run/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace russet::app {

double LearningRate::at(std::int64_t step) const {
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const auto left = static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
  const double done = std::min(static_cast<double>(step - warmup) / left, 1.0);
  if (schedule == "cosine") return lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
  if (schedule == "step") return done < 0.5 ? lr : done < 0.75 ? lr * 0.1 : lr * 0.01;
  return lr;
}

}  // namespace russet::app
