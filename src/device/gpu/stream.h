#pragma once
// Stream: the launches of a device in the order of the plan, with a barrier exactly where two of them conflict.
#include "base/range_set.h"
#include "device/gpu/launch.h"

namespace russet::gpu {

/// Launches between two barriers may overlap in time, so they must not touch the same bytes unless all only read.
class Stream {
 public:
  explicit Stream(Driver& driver) : driver_(driver) {}

  /// Launches, after a barrier if a launch since the last one conflicts with this one.
  void launch(const Launch& launch);
  const void* block_of(const Binding& binding) const { return driver_.block_of(binding.address, binding.bytes); }
  void commit();
  /// Waits until everything has run. Throws what went wrong.
  void wait();
  bool shares_memory_with_host() const { return driver_.shares_memory_with_host(); }
  /// The host wrote these bytes of shared memory after wait().
  void host_wrote(std::byte* address, std::size_t bytes) { driver_.host_wrote(address, bytes); }
  /// Copies after wait(), where memory is not shared.
  void upload(std::byte* target, std::span<const std::byte> source) { driver_.upload(target, source); }
  void download(std::span<std::byte> target, const std::byte* source) { driver_.download(target, source); }

  std::uint64_t launches() const { return launches_; }
  std::uint64_t barriers() const { return barriers_; }

 private:
  Driver& driver_;
  // What launches since the last barrier touch.
  base::RangeSet read_;
  base::RangeSet written_;
  std::uint64_t launches_ = 0;
  std::uint64_t barriers_ = 0;
};

}  // namespace russet::gpu
