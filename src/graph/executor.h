#pragma once
// Executor: what a flush calls. The runtime implements it, once for each kind of device, and registers it.
#include <russet/device.h>
#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "graph/node.h"

namespace russet::graph {

/// The part that a node plays in a flush's work. The keys of plans hold it, too.
struct NodeRole {
  std::array<std::int32_t, 3> inputs{-1, -1, -1};  // positions in Work::nodes
  std::uint8_t further_inputs = 0;                 // how many come after these
  bool leaf = false;                               // in memory
  bool donatable = false;                          // a leaf whose memory nobody needs after this work
  bool steady = false;                             // a leaf of an evaluation that is expected to stay (keeping.h)
  bool again = false;                              // computed for backward again (checkpoint.h)
  bool operator==(const NodeRole&) const = default;
};

struct WorkNode : NodeRole {
  const Node* recorded = nullptr;
  bool output = false;  // must be materialised

  /// What computes the value here: a leaf is in memory, whatever it was recorded as.
  ops::Operation operation() const {
    return leaf ? ops::Operation{*recorded, ops::Op::leaf, {}} : static_cast<const ops::Operation&>(*recorded);
  }
  bool computes(const ops::Operation& other) const {
    return leaf ? static_cast<const ops::Description&>(*recorded) == other : *recorded == other;
  }
};

/// Pending work of one device: a closure of nodes in record order, every input before its reader.
struct Work {
  Device device;
  std::vector<WorkNode> nodes;
  /// The positions of what nodes read beyond three inputs, node after node.
  std::vector<std::int32_t> further_inputs;
};

/// What became of a work. Positions are those of its nodes.
struct Outcome {
  /// The memory of each output that was computed; null for all else.
  std::vector<Ref<Buffer>> results;
  /// Why something was not computed; null if all was.
  std::exception_ptr failure;
  /// What failed of itself, rather than for lack of an input; empty if nobody can tell.
  std::vector<std::int32_t> culprits;
  /// Leaves whose values were overwritten before the failure.
  std::vector<std::int32_t> overwritten;

  void clear(std::size_t nodes) {
    results.assign(nodes, nullptr);
    failure = nullptr;
    culprits.clear();
    overwritten.clear();
  }
};

/// Memory of the host that a device copies from directly.
using StagingMemory = std::shared_ptr<std::byte>;

class Executor {
 public:
  virtual ~Executor() = default;
  /// Computes the outputs of a work, or as many as come before a failure. Threads may call this side by side.
  virtual void execute(const Work& work, Outcome& outcome) = 0;
  /// Memory for a value made on the host; 64-byte aligned.
  virtual Ref<Buffer> allocate(Device device, std::size_t bytes) = 0;
  virtual void upload(Buffer& target, std::span<const std::byte> bytes) = 0;
  /// nullptr if the device copies from any memory alike, or is granted no more of this kind.
  virtual StagingMemory allocate_staging(std::size_t bytes) = 0;
  /// Copies the first bytes while the host goes on: they stay as they are until finish_copies().
  virtual void upload_staged(Buffer& target, const StagingMemory& source, std::size_t bytes) = 0;
  /// Waits until the device has copied what it is to copy from there. The caller alone holds the memory otherwise.
  virtual void finish_copies(const StagingMemory& source) = 0;
  /// Fills it with zeros.
  virtual void clear(Buffer& target) = 0;
  virtual void download(const Buffer& source, std::size_t offset, std::span<std::byte> bytes) = 0;
  /// The memory of another device's value, for reading in place of a copy; nullptr where this device cannot have it.
  /// The value is in memory, and nothing that was started writes it.
  virtual Ref<Buffer> borrow(Device device, const Ref<Buffer>& memory) = 0;
  /// Whether the device computes values, rather than plans alone.
  virtual bool runs() const = 0;
  /// Where the host can read the first bytes of a value: at once, or where a device has memory of its own after it
  /// waited for them once; nullptr if it cannot.
  virtual std::shared_ptr<const std::byte> peek(const Buffer& memory, std::size_t bytes) const = 0;
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
