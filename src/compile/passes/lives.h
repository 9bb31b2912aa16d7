#pragma once
// How long temporaries live in the order of the steps, and how many bytes of them there are at each step.
#include <vector>

#include "compile/program.h"

namespace russet::compile::passes {

/// Temporaries of so many bytes may live longer anywhere.
constexpr std::size_t small_bytes = std::size_t{64} << 10;

struct Lives {
  std::vector<std::int32_t> last;  // by slot: the last step that touches it, or -1
  std::vector<std::size_t> bytes;  // by step
  std::size_t peak = 0;

  /// Whether so many bytes more can live during a step and the next one without a peak that is
  /// higher by more than a trifle.
  bool fits(std::size_t step, std::size_t more) const;
};

Lives lives_of(const Program& program);

}  // namespace russet::compile::passes
