#include "machine.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>

#include "launch.h"
#include "module.h"
#include "run.h"

namespace russet::simulator {
namespace {

/// Dispatches run one after the other, each on all cores: what they get at by address is the machine's alone.
std::mutex machine;

void run_unchecked(const Dispatch& dispatch) {
  Bound bound;
  for (const Range& range : dispatch.buffers) bound.buffers.push_back(range.begin);
  bound.values = dispatch.values.data();
  run_groups(dispatch, bound, 0, group_count(dispatch));
}

}  // namespace

void execute(std::span<const Dispatch> dispatches) {
  const std::lock_guard lock(machine);
  static std::mt19937 random(20240517);
  std::vector<std::size_t> order(dispatches.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    if (judge_launch(dispatches[i])) run_unchecked(dispatches[i]);
  }
}

void mark_uninitialised(const std::byte*, std::size_t) {}
void mark_initialised(const std::byte*, std::size_t) {}

}  // namespace russet::simulator
