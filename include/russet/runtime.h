#pragma once
// The engine seen from a program: flushing, memory limits, threads, counters.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <russet/device.h>
#include <string>
#include <vector>

namespace russet {

/// Compiles and starts everything that the calling thread has recorded.
void flush();
/// Flushes, and waits until every device is idle.
void synchronize();

/// Refuses, with OutOfMemoryError and before it starts, any work whose memory would exceed this. Nothing: no limit.
void set_memory_limit(std::optional<std::size_t> bytes);

/// Threads of the one pool, which libraries share.
void set_num_threads(int count);
int get_num_threads();

/// What the engine has done since the process started.
struct Counters {
  std::uint64_t plans_compiled = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t nodes_recorded = 0;
  std::uint64_t nodes_dropped = 0;
  std::uint64_t kernels_run = 0;
  std::uint64_t bytes_moved = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t fallbacks = 0;
};
Counters counters();

/// Why the last plan was compiled: the first field that differed from the nearest cached plan.
std::string why_compiled();

/// Bytes that values, arenas and hoisted copies occupy on a device now, and the most since reset_peak_memory().
std::size_t memory_in_use(Device device);
std::size_t peak_memory(Device device);
void reset_peak_memory(Device device);

}  // namespace russet
