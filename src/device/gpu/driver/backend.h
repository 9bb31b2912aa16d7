#pragma once
// Backend: what one GPU interface (Metal, CUDA) supplies. The driver that is made of it is the same for all.
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/driver/kernel_cache.h"
#include "device/gpu/driver/memory_blocks.h"
#include "device/gpu/driver/queue.h"
#include "device/gpu/launch.h"

namespace russet::gpu {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceType type() const = 0;
  virtual runtime::DeviceProperties properties() const = 0;
  virtual Properties gpu_properties() const = 0;

  virtual BlockSource& memory() = 0;
  /// A queue of its own, for memory of these blocks. Throws DeviceError.
  virtual std::unique_ptr<Queue> make_queue(MemoryBlocks& blocks) = 0;
  /// See KernelCache.
  virtual std::vector<PipelinePtr> compile(const CompilationUnit& unit) = 0;
  /// See Driver::vendor_libraries.
  virtual std::span<const std::unique_ptr<const VendorLibrary>> vendor_libraries() const { return {}; }
  /// Those that there are, and why there are no others.
  virtual std::vector<LibraryInfo> libraries() const { return {}; }

  /// Whether the host reads and writes the GPU's memory in place, and lends it its own.
  virtual bool shares_memory_with_host() const = 0;
  /// See graph::Executor.
  virtual graph::StagingMemory allocate_staging(std::size_t /*bytes*/) { return nullptr; }
  /// Zeros and copies, when no work touches the GPU's side in conflict.
  virtual void clear(std::byte* target, std::size_t bytes) = 0;
  virtual void copy_to_device(std::byte* target, std::span<const std::byte> source) = 0;
  virtual void copy_to_host(std::span<std::byte> target, const std::byte* source) = 0;

  // For checks of values' lifetimes.
  virtual bool tracks_values() const { return false; }
  /// Memory starts a new life: nothing has been written to it.
  virtual void granted(base::ByteRange /*range*/) {}
  virtual void host_wrote(base::ByteRange /*range*/) {}
};

/// The driver of a GPU behind the interfaces of runtime and compiler. Throws DeviceError.
std::unique_ptr<Driver> make_driver(std::unique_ptr<Backend> backend);

}  // namespace russet::gpu
