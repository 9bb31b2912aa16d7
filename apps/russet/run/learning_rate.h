#pragma once
// The learning rate of each step: a function of the step alone, so that a run resumes anywhere.
#include <cstdint>
#include <string>

namespace russet::app {

struct LearningRate {
  /// cosine: to 0 along half a cosine (Loshchilov and Hutter, 2017); step: a tenth after one half, a hundredth after
  /// three quarters of the steps (He et al., 2016); none: constant.
  std::string schedule = "none";
  double lr = 0;
  /// Steps in which the rate grows evenly from lr / warmup to lr.
  std::int64_t warmup = 0;
  std::int64_t steps = 1;

  /// The rate of step 0, 1, ... steps - 1.
  double at(std::int64_t step) const;
};

}  // namespace russet::app
