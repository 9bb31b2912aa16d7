#pragma once
// One measurement of a benchmark: what is measured, and what came out.
#include <russet/train/workload.h>

#include <cstdint>
#include <optional>
#include <string>

#include "command.h"
#include "machine.h"

namespace russet::app {

/// What is measured, in the words of the command line.
struct BenchCase {
  std::string model;
  std::string phase;
  std::string precision;
  std::string device;
  std::int64_t batch = 0;
};

struct BenchTimes {
  double first_s = 0;  // of the first step, which compiles
  double median_ms = 0;
  double samples_per_s = 0;
  std::uint64_t kernels = 0;  // a step
  std::size_t planned_bytes = 0;
  std::size_t peak_bytes = 0;
  std::optional<std::size_t> resident_bytes{};  // what the system saw the process grow by
  double utilisation = 0;                       // of the machine's operations a second
};

struct Measurement {
  BenchCase what;
  std::optional<BenchTimes> times{};
  std::string error{};  // why there are none
  /// How many times as many samples a second as the baseline takes, where there is one.
  std::optional<double> speedup{};
};

/// How steps are timed.
struct Timing {
  double seconds = 4;                   // about
  bool records_each = false;            // rather than as a captured function
  std::optional<std::size_t> memory{};  // bytes on the device
};
/// Times steps of the workload. Throws what a step throws; OutOfMemoryError for one that needs more memory.
BenchTimes measure(const train::Workload& workload, train::Phase phase, Device device, const Timing& timing,
                   const MachineRate& rate);

/// As a line of output.
Json to_json(const Measurement& measurement);

}  // namespace russet::app
