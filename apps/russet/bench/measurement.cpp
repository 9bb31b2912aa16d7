#include "bench/measurement.h"

#include <russet/captured_function.h>
#include <russet/runtime.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "process.h"

namespace russet::app {
namespace {

constexpr int warm_steps = 3;  // with the first one, those that a captured function records
constexpr std::size_t least_steps = 3;
constexpr std::size_t most_steps = 400;
/// A loop does not wait for a GPU after each step: steps that are short are timed together.
constexpr double round_seconds = 0.2;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// All but what the null device says.
BenchTimes time_steps(const train::Workload& workload, train::Phase phase, Device device, const Timing& timing) {
  BenchTimes result;
  reset_peak_memory(device);
  const std::size_t before = memory_in_use(device);
  const ResidentPeak resident;
  train::Workbench bench(workload, device);
  synchronize();
  const auto take_step = [&](const std::vector<Tensor>&) {
    return std::vector{phase == train::Phase::train ? bench.train_step() : bench.eval_step()};
  };
  CapturedFunction captured(take_step);
  std::vector<Tensor> results;
  const std::function<void()> step = [&] { results = timing.records_each ? take_step({}) : captured(); };
  result.first_s = time_of(step);
  for (int i = 0; i < warm_steps; ++i) time_of(step);
  const std::uint64_t kernels = counters().kernels_run;
  const double one = time_of(step);
  result.kernels = counters().kernels_run - kernels;
  const auto together =
      static_cast<int>(device.type == DeviceType::cpu ? 1 : std::clamp(round_seconds / one, 1.0, 1e3));
  std::vector<double> times;
  for (double spent = 0; (spent < timing.seconds || times.size() < least_steps) && times.size() < most_steps;) {
    const double round = time_of([&] {
      for (int i = 0; i < together; ++i) step();
    });
    times.push_back(round / together);
    spent += round;
  }
  result.median_ms = median(times) * 1e3;
  result.samples_per_s = static_cast<double>(workload.batch) / result.median_ms * 1e3;
  result.peak_bytes = peak_memory(device) - before;
  result.resident_bytes = resident.growth();
  return result;
}

}  // namespace

BenchTimes measure(const train::Workload& workload, train::Phase phase, Device device, const Timing& timing,
                   const MachineRate& rate) {
  BenchTimes result;
  {
    const MemoryLimit limit(timing.memory, device);
    result = time_steps(workload, phase, device, timing);
  }
  // Planned afterwards: the first step's time includes compiling.
  const train::Forecast planned = train::forecast(workload, device, phase, {}, timing.memory);
  result.planned_bytes = planned.peak_bytes;
  result.utilisation = planned.operations / (result.median_ms * 1e-3) / rate.operations_per_s;
  return result;
}

Json to_json(const Measurement& measurement) {
  const BenchCase& what = measurement.what;
  Json line{{"model", what.model},
            {"phase", what.phase},
            {"precision", what.precision},
            {"batch", what.batch},
            {"device", what.device}};
  if (!measurement.times) {
    line["error"] = measurement.error;
    return line;
  }
  const BenchTimes& times = *measurement.times;
  line["ms"] = times.median_ms;
  line["samples_per_s"] = times.samples_per_s;
  line["first_step_s"] = times.first_s;
  line["planned_bytes"] = times.planned_bytes;
  line["peak_bytes"] = times.peak_bytes;
  line["resident_bytes"] = times.resident_bytes ? Json(*times.resident_bytes) : Json();
  line["kernels"] = times.kernels;
  line["utilisation"] = times.utilisation;
  if (measurement.speedup) line["speedup"] = *measurement.speedup;
  return line;
}

}  // namespace russet::app
