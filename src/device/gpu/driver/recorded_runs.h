#pragma once
// RecordedRuns: what runs of plans launched lately, so that a run that binds the same memory again need not put it
// together.
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "device/gpu/driver/timeline.h"
#include "runtime/device.h"

namespace russet::gpu {

/// Not thread-safe.
class RecordedRuns {
 public:
  /// What the run launched when it last came, with these arguments or others, if it takes others; nullptr if that is
  /// not known.
  const Recording* find(const runtime::PlanRun& run);
  /// Whether the run came before, lately: then what it launches is worth keeping.
  bool note(const runtime::PlanRun& run);
  /// Of a run that note() knew.
  void keep(const runtime::PlanRun& run, Recording recording);

 private:
  struct Known {
    std::weak_ptr<const void> plan;
    std::vector<std::byte*> slots;
    const std::byte* arena;
    std::vector<std::uint64_t> arguments;
    Recording recording{};  // of nothing, as long as it came once

    bool is_recorded() const { return recording.encoded != nullptr; }
    /// With other arguments, too, if it takes others, or as long as nobody knows whether it does.
    bool is_of(const runtime::PlanRun& run) const;
  };

  /// Makes the run the first of the list, if it is there.
  Known* use(const runtime::PlanRun& run, bool recorded = false);

  std::list<Known> runs_;  // the last one that was used first
};

}  // namespace russet::gpu
