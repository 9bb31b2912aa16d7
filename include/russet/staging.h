#pragma once
// StagingBuffer: where the host prepares values for a device, batch after batch.
#include <russet/dtype.h>
#include <russet/tensor.h>

#include <cstddef>
#include <memory>
#include <span>

namespace russet {

/// Memory of the host for the values of a tensor on `device`. A device with memory of its own copies from it directly,
/// while the host goes on: then there are two sets of memory, pinned, and while the device copies from one of them the
/// host writes the other.
class StagingBuffer {
 public:
  /// For as many bytes as the largest tensor has. Throws OutOfMemoryError, and DeviceError if there is no such device.
  StagingBuffer(Device device, std::size_t bytes);

  /// What the host writes before to_tensor(). Threads may write different parts at once.
  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }
  /// A tensor of the first elements, in row-major order. Nothing may be written until renew() was called. Throws
  /// ShapeError if the buffer is smaller than the tensor, and OutOfMemoryError.
  Tensor to_tensor(const Shape& shape, DType dtype) const;
  /// bytes() may be written again: the other set of memory, where the device may still copy from this one. Waits where
  /// it has not yet copied from the other one either.
  void renew();

 private:
  Device device_;
  std::size_t bytes_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<std::byte> other_;  // what the device may still copy from
  bool copied_directly_ = false;
};

}  // namespace russet
