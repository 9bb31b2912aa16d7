// russet bench: how fast models train and evaluate, on made-up data.
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>
#include <optional>

#include "command.h"
#include "machine.h"
#include "process.h"
#include "run/defaults.h"
#include "workload.h"

namespace russet::app {
namespace {

using train::Phase;

constexpr int warm_steps = 2;
constexpr std::size_t least_steps = 3;
constexpr std::size_t most_steps = 400;

struct Measured {
  double first_s = 0;
  double median_ms = 0;
  std::uint64_t kernels = 0;  // a step
  std::size_t peak_bytes = 0;
  std::optional<std::size_t> resident_bytes{};  // what the system saw the process grow by
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Measured measure(const train::Workload& workload, Phase phase, Device device, double seconds) {
  Measured result;
  reset_peak_memory(device);
  const std::size_t before = memory_in_use(device);
  const ResidentPeak resident;
  train::Workbench bench(workload, device);
  synchronize();
  Tensor output;
  const std::function<void()> step = [&] {
    if (phase == Phase::train) {
      bench.train_step();
    } else {
      output = bench.eval_step();
    }
  };
  result.first_s = time_of(step);
  for (int i = 0; i < warm_steps; ++i) time_of(step);
  const std::uint64_t kernels = counters().kernels_run;
  std::vector<double> times{time_of(step)};
  result.kernels = counters().kernels_run - kernels;
  double spent = times[0];
  while ((spent < seconds || times.size() < least_steps) && times.size() < most_steps) {
    times.push_back(time_of(step));
    spent += times.back();
  }
  result.median_ms = median(times) * 1e3;
  result.peak_bytes = peak_memory(device) - before;
  result.resident_bytes = resident.growth();
  return result;
}

Json line_of(const std::string& model, const std::string& phase, const std::string& precision,
             const Arguments& arguments, const MachineRate& rate) {
  const train::Workload workload = benchmark_of(model, precision, arguments);
  const Device device(arguments.text("device"));
  // Planned afterwards: the first step's time includes compiling.
  const Measured measured = measure(workload, phase_of(phase), device, arguments.real("seconds"));
  const train::Forecast planned = train::forecast(workload, device, phase_of(phase));
  return {{"model", model},
          {"phase", phase},
          {"precision", precision},
          {"batch", workload.batch},
          {"device", arguments.text("device")},
          {"ms", measured.median_ms},
          {"samples_per_s", static_cast<double>(workload.batch) / measured.median_ms * 1e3},
          {"first_step_s", measured.first_s},
          {"planned_bytes", planned.peak_bytes},
          {"peak_bytes", measured.peak_bytes},
          {"resident_bytes", measured.resident_bytes ? Json(*measured.resident_bytes) : Json()},
          {"kernels", measured.kernels},
          {"utilisation", planned.operations / (measured.median_ms * 1e-3) / rate.operations_per_s}};
}

void print_row(const Json& line) {
  fmt::print("{:<15} {:<6} {:<5} {:>6} {:>10.3f} {:>11.1f} {:>8.2f} {:>12} {:>12} {:>8} {:>6.1f} %\n",
             line["model"].get<std::string>(), line["phase"].get<std::string>(), line["precision"].get<std::string>(),
             line["batch"].get<std::int64_t>(), line["ms"].get<double>(), line["samples_per_s"].get<double>(),
             line["first_step_s"].get<double>(), format_size(line["planned_bytes"].get<std::uint64_t>()),
             format_size(line["peak_bytes"].get<std::uint64_t>()), line["kernels"].get<std::uint64_t>(),
             line["utilisation"].get<double>() * 100);
  std::fflush(stdout);
}

std::vector<std::string> one_or(const std::string& word, std::vector<std::string> all) {
  return word.empty() ? std::move(all) : std::vector<std::string>{word};
}

}  // namespace

void run_bench(const Arguments& arguments) {
  const Device device = require_device(arguments.text("device"));
  const bool json = arguments.flag("json");
  const std::vector<std::string> models = arguments.has("model") ? arguments.texts("model") : models::list_models();
  const std::vector<std::string> phases = one_or(arguments.text("phase"), {"train", "eval"});
  const std::vector<std::string> precisions = one_or(arguments.text("precision"), {"fp32", "bf16"});
  for (const std::string& model : models) models::find_model(model);  // mistakes are said before anything is measured
  std::vector<MachineRate> rates;
  rates.reserve(precisions.size());
  for (const std::string& precision : precisions) {
    rates.push_back(measure_machine(device, precision_type(precision)));
  }
  if (!json) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      fmt::print("this machine, {}: {:.1f} GFLOP/s, {:.1f} GB/s\n", precisions[i], rates[i].operations_per_s * 1e-9,
                 rates[i].bytes_per_s * 1e-9);
    }
    fmt::print("{:<15} {:<6} {:<5} {:>6} {:>10} {:>11} {:>8} {:>12} {:>12} {:>8} {:>8}\n", "model", "phase", "prec",
               "batch", "ms", "samples/s", "first s", "planned", "peak", "kernels", "of peak");
  }
  for (const std::string& model : models) {
    for (const std::string& phase : phases) {
      for (std::size_t i = 0; i < precisions.size(); ++i) {
        const Json line = line_of(model, phase, precisions[i], arguments, rates[i]);
        if (json) {
          print_json(line);
        } else {
          print_row(line);
        }
      }
    }
  }
}

}  // namespace russet::app
