#pragma once
// Tuner: measures the tiles that a contraction may take on the device itself, and remembers the fastest.
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "device/gpu/finds.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/templates/tiles.h"
#include "runtime/memory.h"

namespace russet::gpu {

/// What RUSSET_TUNE asks for.
enum class Tuning : std::uint8_t {
  off,      // "off": the table alone
  finds,    // not set: what was found before, else the table
  measured  // "on": what was not found yet is measured
};
Tuning wanted_tuning();

/// Answers with what was found. Measuring runs a contraction's kernels with all candidates, prologue and epilogue
/// included, on memory of its own that stands for its tensors: nothing else is read or written, and nothing changes but
/// which of several kernels with equal results is taken. What does not fit the memory that is left is not measured.
/// Thread-safe.
class Tuner final : public TileAdviser {
 public:
  struct MeasuringMemory {
    runtime::MemoryPool& pool;
    Device device;
  };
  /// `folder`: of the finds; none are kept if it is empty. `memory`: where measuring takes its memory from; asked for
  /// when the first contraction is measured.
  Tuner(const GpuContext& context, Driver& driver, Tuning tuning, const std::filesystem::path& folder,
        std::function<MeasuringMemory()> memory);

  Tile advise(const TileQuestion& question) override;

 private:
  /// No tile if it cannot be measured.
  Find measure(const TileQuestion& question, const std::string& key);

  const GpuContext& context_;
  Driver& driver_;
  Tuning tuning_;
  std::function<MeasuringMemory()> memory_;
  std::mutex mutex_;
  Finds finds_;
  std::set<std::string> passed_over_;  // that could not be measured
};

}  // namespace russet::gpu
