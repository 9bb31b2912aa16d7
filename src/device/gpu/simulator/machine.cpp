#include "machine.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>

#include "checked/contest.h"
#include "checked/finding.h"
#include "checked/space.h"
#include "launch.h"
#include "module.h"
#include "run.h"

namespace russet::simulator {
namespace {

/// Dispatches run one after the other, each on all cores: what they get at by address is the machine's alone.
std::mutex machine;

void run_unchecked(const Dispatch& dispatch) {
  Bound bound;
  if (dispatch.bases.empty()) {
    for (const BoundMemory& range : dispatch.buffers) bound.buffers.push_back(range.begin);
  } else {
    bound.buffers.assign(dispatch.bases.begin(), dispatch.bases.end());
  }
  bound.values = dispatch.values.data();
  run_groups(dispatch, bound, 0, group_count(dispatch));
  if (!options().checked) return;
  // Nobody watched what it wrote.
  for (const BoundMemory& range : dispatch.buffers) {
    if (range.writable) AddressSpace::shared().uninitialised.remove(base::range_of(range.begin, range.bytes));
  }
}

/// Threadgroups between two looks at the ids that are left.
constexpr std::uint64_t wave = 8192;

void run_checked(const Dispatch& dispatch, Contest& contest, std::size_t index) {
  AddressSpace& space = AddressSpace::shared();
  forget_reported();
  const Bound bound = space.bind(dispatch, contest.concerns(index));
  const std::uint64_t groups = group_count(dispatch);
  for (std::uint64_t first = 0; first < groups; first += wave) {
    if (first > 0) space.renew_ids();
    run_groups(dispatch, bound, first, std::min(first + wave, groups));
  }
  contest.note(index, space);
  space.release();
}

}  // namespace

void execute(std::span<const Dispatch> dispatches) {
  const std::lock_guard lock(machine);
  static std::mt19937 random(20240517);
  std::vector<std::size_t> order(dispatches.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Contest contest(dispatches);
  for (const std::size_t i : order) {
    if (!judge_launch(dispatches[i])) continue;
    if (dispatches[i].kernel->checked) {
      run_checked(dispatches[i], contest, i);
    } else {
      run_unchecked(dispatches[i]);
    }
  }
}

void mark_uninitialised(const std::byte* begin, std::size_t bytes) {
  if (!options().checked) return;
  const std::lock_guard lock(machine);
  AddressSpace::shared().uninitialised.add(base::range_of(begin, bytes));
}

void mark_initialised(const std::byte* begin, std::size_t bytes) {
  if (!options().checked) return;
  const std::lock_guard lock(machine);
  AddressSpace::shared().uninitialised.remove(base::range_of(begin, bytes));
}

}  // namespace russet::simulator
