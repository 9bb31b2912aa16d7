#pragma once
// Spans: the steps between which memory is in use, and where in the arena it lies then.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compile/program.h"

namespace russet::compile::passes {

struct Span {
  std::int32_t slot;  // -1 - s: what step s needs to run
  std::size_t bytes;
  std::int32_t first, last;  // steps that touch it, or -1
  std::size_t offset = 0;
};

/// Of each slot.
std::vector<Span> spans_of(const Program& program);

}  // namespace russet::compile::passes
