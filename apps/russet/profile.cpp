// russet profile: where the time of a step goes.
#include <russet/io.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>
#include <map>
#include <memory>

#include "machine.h"
#include "workload.h"

namespace app {
namespace {

struct Arguments {
  WorkloadArguments workload;
  std::int64_t steps = 5;
  std::int64_t top = 10;
  std::string trace = "trace.json";
  bool json = false;
};

/// All runs of one step of the plan.
struct Row {
  russet::StepInfo step;
  double us = 0;
  int runs = 0;
};

std::vector<Row> rows_of(const russet::Profile& profile) {
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const russet::StepInfo& step : profile.steps) {
    Row& row = rows[{step.kernel, step.detail}];
    row.step = step;
    row.us += step.duration_us;
    ++row.runs;
  }
  std::vector<Row> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.us > b.us; });
  return sorted;
}

russet::Profile profile_of(const russet::train::Workload& workload, const Arguments& arguments) {
  const russet::Device device(arguments.workload.device);
  russet::train::Workbench bench(workload, device);
  const bool train = phase_of(arguments.workload.phase) == russet::train::Phase::train;
  const auto step = [&] {
    if (train) {
      bench.train_step();
    } else {
      bench.eval_step();
    }
    russet::synchronize();
  };
  for (int i = 0; i < 3; ++i) step();
  russet::start_profile();
  for (std::int64_t i = 0; i < arguments.steps; ++i) step();
  return russet::finish_profile();
}

void run(const Arguments& arguments) {
  const russet::Device device = require_device(arguments.workload.device);
  const auto workload = workload_of(arguments.workload.model, arguments.workload.precision, arguments.workload.batch);
  phase_of(arguments.workload.phase);
  if (arguments.steps < 1 || arguments.steps > 10'000) {
    throw russet::ValueError(fmt::format("--steps {}: it must be within 1 and 10000", arguments.steps));
  }
  const russet::Profile profile = profile_of(workload, arguments);
  const MachineRate rate = measure_machine(device, precision_type(arguments.workload.precision));
  russet::io::write_file_atomically(arguments.trace, profile.chrome_trace);
  const std::vector<Row> rows = rows_of(profile);
  double total = 0;
  for (const Row& row : rows) total += row.us;
  const auto steps = static_cast<double>(arguments.steps);
  if (!arguments.json) {
    fmt::print("{}, {}, {}, batch {}: {:.3f} ms in kernels a step; the machine: {:.1f} GFLOP/s, {:.1f} GB/s\n\n",
               workload.model, arguments.workload.phase, arguments.workload.precision, workload.batch,
               total / steps * 1e-3, rate.operations_per_s * 1e-9, rate.bytes_per_s * 1e-9);
    fmt::print("{:>10} {:>6} {:>5} {:>9} {:>9} {:>9}  {:<24} {}\n", "ms a step", "share", "runs", "GFLOP/s", "GB/s",
               "of limit", "kernel", "step");
  }
  const auto shown = std::min(rows.size(), static_cast<std::size_t>(std::max<std::int64_t>(arguments.top, 1)));
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = rows[i];
    const double seconds = row.us * 1e-6 / row.runs;
    const double of_limit = seconds > 0 ? least_time(row.step, rate) / seconds : 0;
    if (arguments.json) {
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
  if (!arguments.json) fmt::print("\ntrace: {} (for chrome://tracing or ui.perfetto.dev)\n", arguments.trace);
}

}  // namespace

void add_profile(CLI::App& program) {
  CLI::App* command = program.add_subcommand("profile", "Where the time of a step goes");
  auto arguments = std::make_shared<Arguments>();
  add_workload_options(*command, arguments->workload);
  command->add_option("--steps", arguments->steps, "How many steps to profile")->capture_default_str();
  command->add_option("--top", arguments->top, "How many of the dearest steps to print")->capture_default_str();
  command->add_option("--trace", arguments->trace, "The chrome trace to write")->capture_default_str();
  command->add_flag("--json", arguments->json, "A JSON line a step");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
