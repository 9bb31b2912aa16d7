#pragma once
// The engine's counters, as every layer adds to them.
#include <atomic>
#include <cstdint>

namespace russet::graph {

struct EngineCounters {
  std::atomic<std::uint64_t> plans_compiled{0};
  std::atomic<std::uint64_t> cache_hits{0};
  std::atomic<std::uint64_t> nodes_recorded{0};
  std::atomic<std::uint64_t> kernels_run{0};
  std::atomic<std::uint64_t> bytes_moved{0};
  std::atomic<std::uint64_t> arena_bytes{0};
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> fallbacks{0};
  std::atomic<std::uint64_t> flush_ns{0};
  std::atomic<std::uint64_t> cached_plans{0};
  std::atomic<std::uint64_t> cached_plan_bytes{0};
};

inline EngineCounters& engine_counters() {
  static EngineCounters counters;
  return counters;
}

}  // namespace russet::graph
