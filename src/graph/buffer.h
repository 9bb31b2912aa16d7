#pragma once
// Buffer: memory of a device that holds one value. Allocators derive from it.
#include <russet/device.h>
#include <russet/ref.h>
#include <cstddef>

namespace russet::graph {

class Buffer : public RefCounted {
 public:
  Buffer(Device device, std::byte* data, std::size_t bytes) : device_(device), data_(data), bytes_(bytes) {}

  Device device() const { return device_; }
  /// The address, which the host may use on CPU devices only.
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Pinned memory is visible outside russet: never donated, hoisted from or overwritten silently.
  bool pinned() const { return pinned_; }
  void pin() { pinned_ = true; }

 private:
  Device device_;
  std::byte* data_;
  std::size_t bytes_;
  bool pinned_ = false;
};

}  // namespace russet::graph
