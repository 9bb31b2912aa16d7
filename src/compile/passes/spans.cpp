#include "compile/passes/spans.h"

namespace russet::compile::passes {

std::vector<Span> spans_of(const Program& program) {
  std::vector<Span> spans;
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    spans.push_back({static_cast<std::int32_t>(slot), program.slots[slot].bytes, -1, -1});
  }
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    for_each_access(program.steps[step], [&](std::int32_t slot, bool) {
      Span& span = spans[static_cast<std::size_t>(slot)];
      if (span.first < 0) span.first = static_cast<std::int32_t>(step);
      span.last = static_cast<std::int32_t>(step);
    });
  }
  return spans;
}

}  // namespace russet::compile::passes
