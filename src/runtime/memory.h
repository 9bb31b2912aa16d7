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
  /// The arena: at least `bytes`, kept until a larger one is needed, or its memory for `more` bytes of buffers under
  /// the limit.
  std::byte* arena(std::size_t bytes, std::size_t more);
  /// Gives the arena and what is kept free back to the system; nothing may be running. The next plan asks for an arena
  /// of its own size.
  void drop_free();

  void set_limit(std::optional<std::size_t> bytes);
  std::optional<std::size_t> limit() const;
  /// Bytes that the limit leaves for an arena and so many further buffers, which are rounded up; nothing without a
  /// limit.
  std::optional<std::size_t> room(std::size_t buffers) const;
  /// Whether the limit allows `more` bytes of buffers beside those in use and the arena as it is.
  bool has_room(std::size_t more) const;
  /// Throws OutOfMemoryError, before anything happens, if `more` bytes of buffers beyond those in use and an arena of
  /// `arena` bytes exceed the limit.
  void check(std::size_t more, std::size_t arena) const;
  /// The limit that what check() refused last would have needed; 0 if it refused nothing.
  std::size_t refused() const;

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
  void trim_for(std::size_t bytes);
  void drop_arena();
  void note_peak();

  DeviceDriver& driver_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // by size
  std::size_t free_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  mutable std::size_t refused_bytes_ = 0;
  std::optional<std::size_t> limit_;
  std::byte* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
};

}  // namespace russet::runtime
