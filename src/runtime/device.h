#pragma once
// What a device supplies to the runtime: what it is, memory, and a target for the compiler.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/step.h"
#include "graph/buffer.h"

namespace russet::runtime {

struct DeviceProperties {
  std::string name;
  std::vector<DType> dtypes;
  int cores = 1;
  std::size_t memory_bytes = 0;
  std::vector<std::string> instruction_sets;
};

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual DeviceProperties properties() const = 0;
  virtual const compile::Target& target() const = 0;
  /// Whether plans run, or are only made (null).
  virtual bool runs() const { return true; }
  /// Memory, 64-byte aligned, page-aligned above a page. Throws OutOfMemoryError.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
  virtual void upload(std::byte* target, std::span<const std::byte> source) = 0;
  virtual void download(std::span<std::byte> target, const std::byte* source) = 0;
  /// Starts what a flush's kernels have encoded; does not wait.
  virtual void commit() {}
  virtual void synchronize() {}
  /// Seconds that a device of its own pace has worked so far, as far as it has been waited for; 0 from the host's.
  virtual double busy_seconds() const { return 0; }
  /// The host wrote these bytes without upload(), after waiting for whoever used them.
  virtual void host_wrote(std::byte* /*address*/, std::size_t /*bytes*/) {}
  /// Whether the device checks lifetimes of values, and wants to be told when one begins: with the next kernel that
  /// runs, nobody may read what lay in these bytes before.
  virtual bool tracks_values() const { return false; }
  virtual void begin_value(std::byte* /*address*/, std::size_t /*bytes*/) {}
};

/// Called by static initialisers of src/device: adding a device is adding a folder.
void register_device(DeviceType type, std::unique_ptr<DeviceDriver> driver);
/// A device that this build or machine lacks, and why (`russet devices` prints it).
void register_unavailable(DeviceType type, std::string reason);
/// nullptr if there is none.
DeviceDriver* driver_of(DeviceType type);
std::string unavailable_reason(DeviceType type);

}  // namespace russet::runtime
