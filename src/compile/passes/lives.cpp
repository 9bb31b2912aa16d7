#include "compile/passes/lives.h"

#include <algorithm>

namespace russet::compile::passes {

bool Lives::fits(std::size_t step, std::size_t more) const {
  return std::max(bytes[step], bytes[std::min(step + 1, bytes.size() - 1)]) + more <= peak + peak / 256;
}

Lives lives_of(const Program& program) {
  Lives lives;
  std::vector<std::int32_t> first(program.slots.size(), -1);
  lives.last.assign(program.slots.size(), -1);
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    for_each_access(program.steps[step], [&](std::int32_t slot, bool) {
      const auto at = static_cast<std::size_t>(slot);
      if (first[at] < 0) first[at] = static_cast<std::int32_t>(step);
      lives.last[at] = static_cast<std::int32_t>(step);
    });
  }
  std::vector<std::int64_t> change(program.steps.size() + 1, 0);
  for (std::size_t slot = 0; slot < first.size(); ++slot) {
    if (first[slot] < 0 || program.slots[slot].kind != Slot::Kind::temporary) continue;
    const auto bytes = static_cast<std::int64_t>(program.slots[slot].bytes);
    change[static_cast<std::size_t>(first[slot])] += bytes;
    change[static_cast<std::size_t>(lives.last[slot]) + 1] -= bytes;
  }
  std::int64_t live = 0;
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    live += change[step];
    lives.bytes.push_back(static_cast<std::size_t>(live));
    lives.peak = std::max(lives.peak, lives.bytes.back());
  }
  return lives;
}

}  // namespace russet::compile::passes
