#pragma once
// What a device supplies to the runtime: what it is, memory, and a target for the compiler.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <russet/runtime.h>

#include "compile/step.h"
#include "graph/buffer.h"
#include "graph/executor.h"

namespace russet::runtime {

struct DeviceProperties {
  std::string name;
  std::vector<DType> dtypes;
  int cores = 1;
  std::size_t memory_bytes = 0;
  std::vector<std::string> instruction_sets;
};

/// What devices share is made of whole pages: Apple silicon's, which those of other computers divide.
inline constexpr std::size_t page = 16384;

/// Memory that the host reads where it lies, and does not own.
inline std::shared_ptr<const std::byte> in_place(const std::byte* memory) {
  return {std::shared_ptr<const std::byte>(), memory};
}

/// What a run of a plan binds. Two that are equal launch the same, if the plan's kernels do nothing but launch.
struct PlanRun {
  std::shared_ptr<const void> plan;
  std::span<std::byte* const> slots;
  const std::byte* arena = nullptr;
  std::span<const std::uint64_t> arguments;
};

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual DeviceProperties properties() const = 0;
  /// Libraries that are loaded when work for them first comes, or now.
  virtual std::vector<LibraryInfo> libraries() const { return {}; }
  virtual const compile::Target& target() const = 0;
  /// Whether plans run, or are only made (null).
  virtual bool runs() const { return true; }
  /// Memory, 64-byte aligned; above a page page-aligned, and whole pages if it can be lent. Throws OutOfMemoryError.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
  virtual void upload(std::byte* target, std::span<const std::byte> source) = 0;
  /// See graph::Executor: a device that copies from the host's memory in its own time supplies these.
  virtual graph::StagingMemory allocate_staging(std::size_t /*bytes*/) { return nullptr; }
  virtual void upload_staged(std::byte* /*target*/, const graph::StagingMemory& /*source*/, std::size_t /*bytes*/) {}
  virtual void finish_copies(const graph::StagingMemory& /*source*/) {}
  /// Fills memory with zeros.
  virtual void clear(std::byte* target, std::size_t bytes) = 0;
  virtual void download(std::span<std::byte> target, const std::byte* source) = 0;
  /// Whether the host, and with it other devices, can read what lies in this memory of the device, in place: nothing
  /// that was started writes it when this returns. Throws DeviceError if what should lie there was lost.
  virtual bool lend(const std::byte* /*memory*/, std::size_t /*bytes*/) { return false; }
  /// Where the host can read what lies in this memory: the memory itself if nothing that was started writes it, or a
  /// copy, for which a device with memory of its own may wait once; nullptr if it cannot.
  virtual std::shared_ptr<const std::byte> peek(const std::byte* /*memory*/, std::size_t /*bytes*/) { return nullptr; }
  /// Whether this device can read another one's memory, above a page, in place, from now until end_borrowing().
  virtual bool borrow(std::byte* /*memory*/, std::size_t /*bytes*/) { return false; }
  /// The value is gone. What was started may still read it: the driver keeps the lender until that is done.
  virtual void end_borrowing(const Ref<graph::Buffer>& /*lender*/) {}
  /// Encodes again what the run encoded when it last came; false if that is not known, then it is to be encoded.
  virtual bool repeat(const PlanRun& /*run*/) { return false; }
  /// Keeps, for repeat(), what was encoded since that returned false: all that the run encodes.
  virtual void remember(const PlanRun& /*run*/) {}
  /// Starts what a flush's kernels have encoded; does not wait.
  virtual void commit() {}
  virtual void synchronize() {}
  /// Whether busy_seconds() is to count what is started from now on: some devices are slower while they measure.
  virtual void keep_times(bool /*keeps*/) {}
  /// Seconds that a device of its own pace has worked so far, as far as it has been waited for; 0 from the host's.
  virtual double busy_seconds() const { return 0; }
  /// The host wrote these bytes without upload(), after waiting for whoever used them.
  virtual void host_wrote(std::byte* /*address*/, std::size_t /*bytes*/) {}
  /// Whether the device checks lifetimes of values, and wants to be told when one begins: with the next kernel that
  /// runs, nobody may read what lay in these bytes before.
  virtual bool tracks_values() const { return false; }
  virtual void begin_value(std::byte* /*address*/, std::size_t /*bytes*/) {}
};

/// Makes the driver of a device. Throws DeviceError, whose words say why this build or machine lacks the device.
using DriverFactory = std::function<std::unique_ptr<DeviceDriver>()>;

/// Called by static initialisers of src/device: adding a device is adding a folder. The driver is made when the device
/// is first used.
void register_device(DeviceType type, DriverFactory make);
/// Makes a driver that plans for a device with a chip of this name ("": any) and runs nothing. Throws ValueError if
/// nothing is known of the chip.
using PlannerFactory = std::function<std::unique_ptr<DeviceDriver>(std::string_view chip)>;
void register_planner(DeviceType type, PlannerFactory make);
/// The driver of a device, made if it was not; nullptr if there is none.
DeviceDriver* driver_of(DeviceType type);
/// Why there is none (`russet devices` prints it).
std::string unavailable_reason(DeviceType type);
/// The driver; throws DeviceError that says why there is none.
DeviceDriver& require_driver(Device device);
/// What plans for the device: where a chip is named or the device is not available a planner of its own, else its
/// driver. Throws DeviceError if there is neither, ValueError if there is nothing of that chip.
DeviceDriver& require_planner(Device device, std::string_view chip);

}  // namespace russet::runtime
