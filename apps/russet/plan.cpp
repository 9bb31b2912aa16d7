// russet plan: what a step of a model would do and need, without running it.
#include <russet/chips.h>
#include <russet/train.h>

#include <map>

#include "command.h"
#include "workload.h"

namespace russet::app {
namespace {

Json to_json(const StepInfo& step) {
  return {{"kernel", step.kernel}, {"step", step.detail}, {"bytes", step.bytes}, {"operations", step.operations}};
}

/// How many steps each kind of kernel takes, the most frequent first.
std::vector<std::pair<std::string, int>> kernels_of(const train::Forecast& forecast) {
  std::map<std::string, int> counts;
  for (const StepInfo& step : forecast.steps) ++counts[step.kernel];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

/// What it costs to launch a kernel, at the least: an assumption.
constexpr double launch_microseconds = 2;

/// What a model of the chip says of each step, and of all. A lower bound, not a measurement.
void print_model(const train::Forecast& forecast, const Chip& chip) {
  double total = 0;
  int launches = 0;
  const std::string half = chip.half_teraflops > 0 ? fmt::format(", {} by tensor cores", chip.half_teraflops) : "";
  fmt::print("\nA model of {} ({} GB/s, {} TFLOPS in float32{}, {} us a launch): lower bounds, never a measurement\n",
             chip.name, chip.gigabytes_a_second, chip.teraflops, half, launch_microseconds);
  for (const StepInfo& step : forecast.steps) {
    const double work = modelled_seconds(static_cast<double>(step.bytes), step.operations, chip, step.factors) * 1e6;
    const double time = work + launch_microseconds * step.launches;
    fmt::print("{:>10.1f} us {:>3} x {:<28} {:>12} B {:>10.4g} MFLOP  {}\n", time, step.launches, step.kernel,
               step.bytes, step.operations * 1e-6, step.detail);
    total += time;
    launches += step.launches;
  }
  fmt::print("{:>10.1f} us in all, {} kernels\n", total, launches);
}

/// Kernels that GPUs launch for all steps.
int launches_of(const train::Forecast& forecast) {
  int launches = 0;
  for (const StepInfo& step : forecast.steps) launches += step.launches;
  return launches;
}

void print(const train::Forecast& forecast, const train::Workload& workload, const Arguments& arguments) {
  fmt::print("{}, {}, {}, batch {}, on {}\n", workload.model, arguments.text("phase"), arguments.text("precision"),
             workload.batch, arguments.text("device"));
  fmt::print("  steps        {}, {} kernels launched\n", forecast.steps.size(), launches_of(forecast));
  fmt::print("  kernels     ");
  for (const auto& [name, count] : kernels_of(forecast)) fmt::print(" {} x {}", count, name);
  fmt::print("\n  bytes moved  {} ({})\n", forecast.bytes_moved, format_size(forecast.bytes_moved));
  fmt::print("  operations   {:.4g} GFLOP\n", forecast.operations * 1e-9);
  fmt::print("  peak memory  {} ({}), {} of them for temporaries\n", forecast.peak_bytes,
             format_size(forecast.peak_bytes), format_size(forecast.arena_bytes));
  if (!arguments.flag("steps")) return;
  for (std::size_t i = 0; i < forecast.steps.size(); ++i) {
    const StepInfo& step = forecast.steps[i];
    fmt::print("{:5} {:<28} {:>12} B {:>12.4g} MFLOP  {}\n", i, step.kernel, step.bytes, step.operations * 1e-6,
               step.detail);
  }
}

void print_as_json(const train::Forecast& forecast, const train::Workload& workload, const Arguments& arguments) {
  Json line{{"model", workload.model},
            {"phase", arguments.text("phase")},
            {"precision", arguments.text("precision")},
            {"batch", workload.batch},
            {"device", arguments.text("device")},
            {"steps", forecast.steps.size()},
            {"launches", launches_of(forecast)},
            {"kernels", Json::object()},
            {"bytes_moved", forecast.bytes_moved},
            {"operations", forecast.operations},
            {"peak_bytes", forecast.peak_bytes},
            {"arena_bytes", forecast.arena_bytes}};
  for (const auto& [name, count] : kernels_of(forecast)) line["kernels"][name] = count;
  if (arguments.flag("steps")) {
    for (const StepInfo& step : forecast.steps) line["list"].push_back(to_json(step));
  }
  print_json(line);
}

}  // namespace

void run_plan(const Arguments& arguments) {
  const Device device(arguments.text("device"));
  const std::string chip = arguments.text("chip");
  const auto workload = workload_of(arguments);
  std::optional<std::size_t> memory;
  if (arguments.has("memory")) memory = arguments.bytes("memory");
  const auto forecast = train::forecast(workload, device, phase_of(arguments.text("phase")), chip, memory);
  if (!forecast.fits) {
    throw OutOfMemoryError(
        fmt::format("{} at batch {} needs {} at least, and --memory grants {}: choose a smaller batch", workload.model,
                    workload.batch, format_size(forecast.peak_bytes), format_size(*memory)));
  }
  if (arguments.flag("json")) {
    print_as_json(forecast, workload, arguments);
  } else {
    print(forecast, workload, arguments);
    if (!chip.empty()) print_model(forecast, chip_of(chip, device.type));
  }
}

}  // namespace russet::app
