#pragma once
// The engine seen from a program: flushing, memory limits, threads, counters.
#include <russet/device.h>
#include <russet/dtype.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace russet {

/// Compiles and starts everything that the calling thread has recorded.
void flush();
/// Calls `work`, then computes what it recorded. Where backward() or Optimizer::step() would have computed what is
/// pending, nothing happens within `work`, so that a whole step of training is one plan: a gradient that is dropped
/// (Optimizer::zero_grad) at the end of `work` then need not be stored where the update can be computed with it.
/// Reading a value and flush() compute as always. Throws what `work` throws; what it recorded stays pending then. If
/// an operator fails while the plan runs, this throws its error: what depends on it has not happened, all else has.
void in_one_plan(const std::function<void()>& work);
/// Where a step of training ends a part of its work: flush(), or nothing within in_one_plan().
void mark();
/// Flushes, and waits until every device is idle.
void synchronize();

/// Limits the memory that values and work take on each device, and what is kept for later besides. Work that would
/// exceed it is planned anew: values that are needed again later are computed again rather than kept, the cheapest
/// first, as far as it takes; results have the same bits. What does not fit then is refused with OutOfMemoryError
/// before it starts. Nothing: no limit.
void set_memory_limit(std::optional<std::size_t> bytes);
/// Likewise, of one device alone. Throws DeviceError where there is none.
void set_memory_limit(std::optional<std::size_t> bytes, Device device);
/// The limit of a device, if it has one.
std::optional<std::size_t> memory_limit(Device device);
/// The limit that what was refused last on a device would have needed, values in use included; 0 if nothing was.
std::size_t memory_refused(Device device);
/// A limit of one device while this lives; then the one before holds again.
class MemoryLimit {
 public:
  MemoryLimit(std::optional<std::size_t> bytes, Device device) : device_(device), before_(memory_limit(device)) {
    set_memory_limit(bytes, device);
  }
  ~MemoryLimit() { set_memory_limit(before_, device_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  Device device_;
  std::optional<std::size_t> before_;
};

/// Threads of the one pool, which libraries share.
void set_num_threads(int count);
int get_num_threads();

/// What the engine has done since the process started.
struct Counters {
  std::uint64_t plans_compiled = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t nodes_recorded = 0;
  std::uint64_t kernels_run = 0;
  std::uint64_t bytes_moved = 0;
  std::uint64_t arena_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t cached_plans = 0;  // now
  std::uint64_t cached_plan_bytes = 0;
  std::uint64_t flush_ns = 0;  // host time inside flushes, in nanoseconds; with kernels where the device is the host
};
Counters counters();

/// Why the last plan was compiled: the first field that differed from the nearest cached plan.
std::string why_compiled();

/// Bytes that values, arenas and what evaluations keep of parameters occupy on a device now, and the most since
/// reset_peak_memory().
std::size_t memory_in_use(Device device);
std::size_t peak_memory(Device device);
/// Starts measuring anew: waits, and gives the arena and memory kept for later back to the system, so that an earlier
/// program's does not count for the next.
void reset_peak_memory(Device device);

/// What there is, what it can do, and why the others are not available.
/// A library that a device gives work to where it is there.
struct LibraryInfo {
  std::string name;    // "cuDNN 9.19.0"; without the version where it is missing
  std::string reason;  // why it is missing; empty if it is not
};

struct DeviceInfo {
  Device device;
  bool available = false;
  std::string reason;  // why not
  std::string name;
  std::vector<DType> dtypes;
  int cores = 0;
  std::size_t memory_bytes = 0;
  std::vector<std::string> instruction_sets;
  std::vector<LibraryInfo> libraries;
};
std::vector<DeviceInfo> devices();

/// The null device compiles as if it were `device` from now on: with a program's tensors on Device("null"), counters,
/// plans and peak_memory(Device("null")) tell what the program would need there, without running it. `chip`: as if it
/// were the GPU of this chip (russet/chips.h); an mps that is not there is by default that of the first one. Throws
/// DeviceError if nothing is known of the device, ValueError if nothing is known of the chip.
void plan_null_as(Device device, std::string_view chip = {});

/// One step of a plan: times are 0 where nothing ran.
struct StepInfo {
  std::string kernel;
  std::string detail;
  double start_us = 0;
  double duration_us = 0;
  std::size_t bytes = 0;
  double operations = 0;           // floating-point operations, two for a multiply-add
  int launches = 1;                // kernels that a GPU launches for it
  std::optional<DType> factors{};  // of a contraction: their type
};

/// A plan as it is about to run.
struct PlanSummary {
  std::vector<StepInfo> steps;
  std::size_t arena_bytes = 0;
  std::size_t output_bytes = 0;
};
/// Calls `observer` with every plan that runs on the device from now on; an empty function ends that.
void observe_plans(Device device, std::function<void(const PlanSummary&)> observer);

/// Times every step from now on.
void start_profile();
struct Profile {
  std::vector<StepInfo> steps;  // in the order in which they ran
  std::string chrome_trace;     // a JSON document for chrome://tracing or Perfetto
};
Profile finish_profile();

}  // namespace russet
