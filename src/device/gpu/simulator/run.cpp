#include "run.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "executor.h"
#include "module.h"
#include "subnormals.h"

namespace russet::simulator {
namespace {

/// Fewer threads than this are done before another core has woken up.
constexpr std::uint64_t worth_waking = 4096;

void place(Threadgroup& threadgroup, const Dispatch& dispatch, std::uint64_t group) {
  const auto& [x, y, z] = dispatch.groups;
  threadgroup.group_id[0] = static_cast<std::uint32_t>(group % x);
  threadgroup.group_id[1] = static_cast<std::uint32_t>(group / x % y);
  threadgroup.group_id[2] = static_cast<std::uint32_t>(group / x / y);
}

void judge_group_memory(const Dispatch& dispatch, const Threadgroup& threadgroup) {
  using namespace russet_simulator;
  if (threadgroup.group_bytes <= group_memory_bytes && threadgroup.group_arrays <= max_group_arrays) return;
  add_report({"launch", dispatch.kernel->name(),
              fmt::format("{} bytes of group memory in {} arrays: {} bytes in {} arrays at most",
                          threadgroup.group_bytes, threadgroup.group_arrays, group_memory_bytes, max_group_arrays)});
}

void run_on_this_core(const Dispatch& dispatch, const Bound& bound, std::atomic<std::uint64_t>& next,
                      std::uint64_t last, std::uint64_t chunk) {
  const Kernel& kernel = *dispatch.kernel;
  Executor& executor = Executor::mine();
  Threadgroup& threadgroup = executor.threadgroup();
  threadgroup.buffers = bound.buffers.data();
  threadgroup.values = bound.values;
  std::ranges::copy(dispatch.groups, threadgroup.group_count);
  threadgroup.threads = dispatch.threads;
  const SubnormalMode mode(options().flush_subnormals);
  for (std::uint64_t begin; (begin = next.fetch_add(chunk)) < last;) {
    for (std::uint64_t group = begin; group < std::min(begin + chunk, last); ++group) {
      place(threadgroup, dispatch, group);
      if (kernel.checked) {
        executor.run_checked_group(*kernel.entry, kernel.module, static_cast<std::uint32_t>(group));
      } else {
        executor.run_group(*kernel.entry);
      }
      if (group == 0) judge_group_memory(dispatch, threadgroup);
      if (executor.is_endless()) return next.store(last);
    }
  }
}

}  // namespace

std::uint64_t group_count(const Dispatch& dispatch) {
  return std::uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
}

void run_groups(const Dispatch& dispatch, const Bound& bound, std::uint64_t first, std::uint64_t last) {
  std::atomic<std::uint64_t> next{first};
  const std::uint64_t threads = (last - first) * dispatch.threads;
  if (threads < worth_waking || last - first == 1) return run_on_this_core(dispatch, bound, next, last, last - first);
  base::parallel_region([&](int, int cores) {
    const std::uint64_t chunk =
        std::clamp<std::uint64_t>((last - first) / (static_cast<std::uint64_t>(cores) * 8), 1, 64);
    run_on_this_core(dispatch, bound, next, last, chunk);
  });
}

}  // namespace russet::simulator
