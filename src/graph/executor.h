#pragma once
// Executor: what a flush calls. The runtime implements it, once for each kind of device, and registers it.
#include <russet/device.h>
#include <array>
#include <span>
#include <vector>

#include "graph/node.h"

namespace russet::graph {

/// Pending work of one device: a closure of nodes in record order, every input before its reader.
struct Work {
  struct Entry {
    Node* node;
    std::array<std::int32_t, 3> inputs{-1, -1, -1};  // positions in `entries`
    bool output = false;                             // must be materialised
    bool donatable = false;                          // a leaf whose memory nobody needs after this work
    bool persistent = false;  // a leaf that lives across steps (a parameter or buffer of a module)
  };
  Device device;
  std::vector<Entry> entries;
  /// The positions of what nodes read beyond three inputs, entry after entry.
  std::vector<std::int32_t> further_inputs;
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// Computes the outputs and materialises their nodes. Throws before anything started, or fails the nodes.
  virtual void execute(Work& work) = 0;
  /// Memory for a value made on the host; 64-byte aligned.
  virtual Ref<Buffer> allocate(Device device, std::size_t bytes) = 0;
  virtual void upload(Buffer& target, std::span<const std::byte> bytes) = 0;
  virtual void download(const Buffer& source, std::size_t offset, std::span<std::byte> bytes) = 0;
  /// The memory of another device's value, for reading in place of a copy; nullptr where this device cannot have it.
  /// The value is in memory, and nothing that was started writes it.
  virtual Ref<Buffer> borrow(Device device, const Ref<Buffer>& memory) = 0;
  /// Whether the device has kernels for attention in this type. What has none is better recorded as what it consists
  /// of: then backward keeps the probabilities.
  virtual bool has_attention(DType dtype) const = 0;
  /// Waits for all that has been started.
  virtual void synchronize() = 0;
};

/// The runtime implements this: one executor a device.
/// Throws DeviceError that says why the device is not available.
Executor& executor_of(Device device);

}  // namespace russet::graph
