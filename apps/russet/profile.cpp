// russet profile: where the time of a step goes.
#include <russet/io.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>
#include <map>

#include "command.h"
#include "machine.h"
#include "run/defaults.h"
#include "workload.h"

namespace russet::app {
namespace {

/// All runs of one step of the plan.
struct Row {
  StepInfo step;
  double us = 0;
  int runs = 0;
};

std::vector<Row> rows_of(const Profile& profile) {
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const StepInfo& step : profile.steps) {
    Row& row = rows[{step.kernel, step.detail}];
    row.step = step;
    row.us += step.duration_us;
    ++row.runs;
  }
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.us > b.us; });
  return sorted;
}

Profile profile_of(const train::Workload& workload, const Arguments& arguments) {
  const Device device(arguments.text("device"));
  train::Workbench bench(workload, device);
  const bool train = phase_of(arguments.text("phase")) == train::Phase::train;
  const auto step = [&] {
    if (train) {
      bench.train_step();
    } else {
      bench.eval_step();
    }
    synchronize();
  };
  for (int i = 0; i < 3; ++i) step();
  start_profile();
  for (std::int64_t i = 0; i < arguments.integer("steps"); ++i) step();
  return finish_profile();
}

}  // namespace

void run_profile(const Arguments& arguments) {
  const Device device = require_device(arguments.text("device"));
  const auto workload = workload_of(arguments);
  const bool json = arguments.flag("json");
  const std::string trace = arguments.text("trace");
  const Profile profile = profile_of(workload, arguments);
  const MachineRate rate = measure_machine(device, precision_type(arguments.text("precision")));
  io::write_file_atomically(trace, profile.chrome_trace);
  const std::vector<Row> rows = rows_of(profile);
  double total = 0;
  for (const Row& row : rows) total += row.us;
  const auto steps = static_cast<double>(arguments.integer("steps"));
  if (!json) {
    fmt::print("{}, {}, {}, batch {}: {:.3f} ms in kernels a step; the machine: {:.1f} GFLOP/s, {:.1f} GB/s\n\n",
               workload.model, arguments.text("phase"), arguments.text("precision"), workload.batch,
               total / steps * 1e-3, rate.operations_per_s * 1e-9, rate.bytes_per_s * 1e-9);
    fmt::print("{:>10} {:>6} {:>5} {:>9} {:>9} {:>9}  {:<24} {}\n", "ms a step", "share", "runs", "GFLOP/s", "GB/s",
               "of limit", "kernel", "step");
  }
  const auto shown = std::min(rows.size(), static_cast<std::size_t>(arguments.integer("top")));
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = rows[i];
    const double seconds = row.us * 1e-6 / row.runs;
    const double of_limit = seconds > 0 ? least_time(row.step, rate) / seconds : 0;
    if (json) {
      print_json({{"kernel", row.step.kernel},
                  {"step", row.step.detail},
                  {"ms", row.us * 1e-3 / steps},
                  {"share", total > 0 ? row.us / total : 0},
                  {"runs", row.runs / steps},
                  {"operations_per_s", row.step.operations / seconds},
                  {"bytes_per_s", static_cast<double>(row.step.bytes) / seconds},
                  {"of_limit", of_limit}});
      continue;
    }
    fmt::print("{:>10.3f} {:>4.1f} % {:>5.0f} {:>9.1f} {:>9.2f} {:>7.1f} %  {:<24} {:.100}\n", row.us * 1e-3 / steps,
               total > 0 ? row.us / total * 100 : 0, row.runs / steps, row.step.operations / seconds * 1e-9,
               static_cast<double>(row.step.bytes) / seconds * 1e-9, of_limit * 100, row.step.kernel, row.step.detail);
  }
  if (!json) fmt::print("\ntrace: {} (for chrome://tracing or ui.perfetto.dev)\n", trace);
}

}  // namespace russet::app
