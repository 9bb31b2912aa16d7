#pragma once
// What the machine can do at most, measured through the library itself.
#include <russet/device.h>
#include <russet/dtype.h>
#include <russet/runtime.h>

#include <functional>

namespace russet::app {

struct MachineRate {
  double operations_per_s = 0;  // of a large matrix product: floating-point operations, two for a multiply-add
  double bytes_per_s = 0;       // of an addition to an array that no cache holds, read and written
};

/// Takes about a second.
MachineRate measure_machine(Device device, DType type);

/// Seconds that `work` takes, the device's included.
double time_of(const std::function<void()>& work);

/// The shortest time, in seconds, in which the machine could do a step, by its operations and its bytes.
double least_time(const StepInfo& step, const MachineRate& rate);

}  // namespace russet::app
