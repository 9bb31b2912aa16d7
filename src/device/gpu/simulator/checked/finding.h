#pragma once
// Reports of checks on accesses, each once a dispatch for a line.
#include "cell.h"
#include "device/gpu/simulator/executor.h"

namespace russet::simulator {

struct Access {
  std::uintptr_t address;
  std::uint32_t bytes;
  bool write;
  bool atomic;
  const void* site;  // behind the access
};

void report_bounds(const Executor& executor, const Access& access);
void report_uninitialised(const Executor& executor, const Access& access);
void report_conflict(const Executor& executor, const Access& access, Conflict conflict, ShadowCell other,
                     const IntervalClock& clock);
void report_arithmetic(const Executor& executor, std::string_view what, const void* site);
/// An index beyond an array of known length, of this type.
void report_index(const Executor& executor, std::uintptr_t index, std::string_view type, const void* site);

/// An access beyond an array of a thread's own.
void report_array(const Executor& executor, const void* site);

/// A new dispatch: what has been reported may be reported again.
void forget_reported();

}  // namespace russet::simulator
