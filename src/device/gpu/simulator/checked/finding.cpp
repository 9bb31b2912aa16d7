#include "finding.h"

#include <fmt/format.h>
#include <mutex>
#include <set>

#include "device/gpu/simulator/line.h"
#include "device/gpu/simulator/machine.h"
#include "space.h"

namespace russet::simulator {
namespace {

std::mutex mutex;
std::set<std::pair<const void*, std::string_view>> reported;

bool first_time(const void* site, std::string_view check) {
  const std::lock_guard lock(mutex);
  return reported.emplace(site, check).second;
}

const char* verb(const Access& access) {
  if (access.atomic) return "updates atomically";
  return access.write ? "writes" : "reads";
}

/// "byte 68 of 'x' (tensor 'weight', 64 bytes)".
std::string place(const Executor& executor, std::uintptr_t address) {
  const AddressSpace& space = AddressSpace::shared();
  if (space.holds(address)) {
    const Window& window = space.window_at(address);
    if (window.spans.empty()) return "no argument's memory";
    const Span* best = &window.spans.front();
    for (const Span& span : window.spans) {
      if (address >= span.begin && address < span.end) best = &span;
    }
    return fmt::format("byte {} of '{}' ({}, {} bytes{})", static_cast<std::int64_t>(address - best->begin),
                       best->argument, best->tensor, best->end - best->begin, best->writable ? "" : ", read alone");
  }
  if (executor.owns_stack(reinterpret_cast<const void*>(address))) {
    return Stacks::misses(address, 1) ? "memory between the thread's variables" : "a variable of the thread's own";
  }
  const Threadgroup& threadgroup = executor.threadgroup();
  const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(threadgroup.group_memory);
  if (offset < GroupShadow::memory_bytes) {
    const std::uint32_t i = static_cast<std::uint32_t>(offset / russet_simulator::group_window_bytes);
    if (i >= threadgroup.group_arrays) return "no array in group memory";
    return fmt::format("byte {} of '{}' (group memory, {} bytes)",
                       static_cast<std::int64_t>(offset) - russet_simulator::group_array_offset(i),
                       threadgroup.arrays[i].name, threadgroup.arrays[i].bytes);
  }
  return fmt::format("address {:#x}, which no argument gave it", address);
}

void report(const Executor& executor, const char* check, const Access& access, std::string_view what) {
  if (!first_time(access.site, check)) return;
  add_report({check, executor.entry().name,
              fmt::format("{}: thread {} of threadgroup {} {} {} bytes at {}{}", line_of(access.site),
                          executor.threadgroup().current, group_name(executor.threadgroup()), verb(access),
                          access.bytes, place(executor, access.address), what)});
}

std::string who(ShadowCell cell, const IntervalClock& clock) {
  if ((cell & cell_divided) != 0) return "another thread";
  if (clock.owners != nullptr && clock.owners[cell_id(cell)] != clock.serial) return "a thread of another threadgroup";
  if ((cell & cell_many) != 0) return "several threads";
  return fmt::format("thread {}", cell_thread(cell));
}

}  // namespace

void report_bounds(const Executor& executor, const Access& access) {
  report(executor, "bounds", access,
         access.address % access.bytes != 0 && std::has_single_bit(access.bytes) ? ", which is not aligned to its size"
                                                                                 : "");
}

void report_uninitialised(const Executor& executor, const Access& access) {
  report(executor, "uninitialised", access, ", which nothing has written");
}

void report_conflict(const Executor& executor, const Access& access, Conflict conflict, ShadowCell other,
                     const IntervalClock& clock) {
  const bool wrote = (other & (cell_write | cell_sub_wrote)) != 0 || (other & cell_divided) != 0;
  const char* const did = (other & cell_atomic) != 0 ? "updated atomically" : wrote ? "wrote" : "read";
  report(executor, conflict == Conflict::race ? "race" : "atomic", access,
         fmt::format(", which {} {} with no barrier between that orders {} memory", who(other, clock), did,
                     clock.owners == nullptr ? "threadgroup" : "device"));
}

void report_arithmetic(const Executor& executor, std::string_view what, const void* site) {
  if (!first_time(site, "arithmetic")) return;
  add_report({"arithmetic", executor.entry().name,
              fmt::format("{}: {} by thread {} of threadgroup {}", line_of(site), what, executor.threadgroup().current,
                          group_name(executor.threadgroup()))});
}

void report_index(const Executor& executor, std::uintptr_t index, std::string_view type, const void* site) {
  if (!first_time(site, "bounds")) return;
  add_report({"bounds", executor.entry().name,
              fmt::format("{}: index {} is outside of an array {}, by thread {} of threadgroup {}", line_of(site),
                          static_cast<std::int64_t>(index), type, executor.threadgroup().current,
                          group_name(executor.threadgroup()))});
}

void report_array(const Executor& executor, const void* site) {
  if (!first_time(site, "bounds")) return;
  add_report({"bounds", executor.entry().name,
              fmt::format("{}: an access beyond an array of the thread's own, or a function without an end, by thread "
                          "{} of threadgroup {}",
                          line_of(site), executor.threadgroup().current, group_name(executor.threadgroup()))});
}

void forget_reported() {
  const std::lock_guard lock(mutex);
  reported.clear();
}

}  // namespace russet::simulator
