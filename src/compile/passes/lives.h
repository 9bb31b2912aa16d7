#pragma once
// How long temporaries live in the order of the steps, and how many bytes of them there are at each step.
#include <vector>

#include "compile/program.h"

namespace russet::compile::passes {

/// Passes may lengthen the life of temporaries up to this size without looking at the plan's peak.
constexpr std::size_t small_bytes = std::size_t{64} << 10;

struct Lives {
  std::vector<std::int32_t> last;  // by slot: the last step that touches it, or -1
  std::vector<std::size_t> bytes;  // by step
  std::size_t peak = 0;

  /// Whether `more` bytes can be alive during this step and the next without raising the plan's peak noticeably.
  bool fits(std::size_t step, std::size_t more) const;
};

Lives lives_of(const Program& program);

}  // namespace russet::compile::passes
