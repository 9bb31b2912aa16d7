#pragma once
// Buffer: memory of a device that holds one value. Allocators derive from it.
#include <russet/device.h>
#include <russet/ref.h>
#include <atomic>
#include <cstddef>
#include <utility>

namespace russet::graph {

class Buffer : public RefCounted {
 public:
  /// `lender`: the buffer of another device whose memory this one is, if it has none of its own.
  Buffer(Device device, std::byte* data, std::size_t bytes, Ref<Buffer> lender = {})
      : device_(device), data_(data), bytes_(bytes), lender_(std::move(lender)) {}

  Device device() const { return device_; }
  /// The address, which the host may use on CPU devices only.
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Pinned memory is visible outside russet: never donated, taken for steady or overwritten silently.
  bool pinned() const { return pinned_.load(std::memory_order_relaxed); }
  void pin() { pinned_.store(true, std::memory_order_relaxed); }
  const Ref<Buffer>& lender() const { return lender_; }
  /// Whether values of two devices lie in this memory: it stays as it is until one of them is gone.
  bool shared() const { return lender_ || reference_count() > 1; }

 protected:
  /// For who is being destroyed.
  Ref<Buffer> take_lender() { return std::move(lender_); }

 private:
  Device device_;
  std::byte* data_;
  std::size_t bytes_;
  Ref<Buffer> lender_;
  std::atomic<bool> pinned_{false};
};

}  // namespace russet::graph
