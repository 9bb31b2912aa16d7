#pragma once
// Memory of a device: buffers from a bounded pool, so that a steady loop asks the system for nothing.
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "graph/buffer.h"
#include "runtime/device.h"

namespace russet::runtime {

/// Thread-safe. Buffers may outlive their tensors but not the pool, which lives as long as the process.
class MemoryPool {
 public:
  explicit MemoryPool(DeviceDriver& driver) : driver_(driver) {}

  /// A buffer of at least `bytes`. Throws OutOfMemoryError when the limit or the device does not grant it, after
  /// giving back what the pool keeps free.
  Ref<graph::Buffer> allocate(Device device, std::size_t bytes);
  /// The arena: at least `bytes`, kept until a larger one is needed.
  std::byte* arena(std::size_t bytes);
  /// Gives the arena and what is kept free back to the system; nothing may be running. The next plan asks for an arena
  /// of its own size.
  void drop_free();

  void set_limit(std::optional<std::size_t> bytes);
  std::optional<std::size_t> limit() const;
  /// Throws OutOfMemoryError, before anything happens, if `more` bytes beyond those in use exceed the limit; `arena`
  /// is what the work needs of the arena.
  void check(std::size_t more, std::size_t arena) const;

  /// Bytes of buffers, without the arena.
  std::size_t used() const;
  std::size_t in_use() const;
  std::size_t peak() const;
  void reset_peak();

 private:
  class PooledBuffer;
  std::byte* take(std::size_t bytes);
  void give(std::byte* memory, std::size_t bytes);
  void trim(std::size_t keep);
  void note_peak();

  DeviceDriver& driver_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // by size
  std::size_t free_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::optional<std::size_t> limit_;
  std::byte* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
};

}  // namespace russet::runtime
