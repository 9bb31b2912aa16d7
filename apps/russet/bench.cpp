// russet bench: how fast models train and evaluate, on made-up data.
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "machine.h"
#include "process.h"
#include "workload.h"

namespace app {
namespace {

using russet::train::Phase;

struct Arguments {
  std::vector<std::string> models;
  std::string phase;
  std::string precision;
  std::string device = "cpu";
  std::int64_t batch = 0;
  double seconds = 4;
  bool json = false;
};

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

Measured measure(const russet::train::Workload& workload, Phase phase, russet::Device device, double seconds) {
  Measured result;
  russet::reset_peak_memory(device);
  const std::size_t before = russet::memory_in_use(device);
  const ResidentPeak resident;
  russet::train::Workbench bench(workload, device);
  russet::synchronize();
  russet::Tensor output;
  const std::function<void()> step = [&] {
    if (phase == Phase::train) {
      bench.train_step();
    } else {
      output = bench.eval_step();
    }
  };
  result.first_s = time_of(step);
  for (int i = 0; i < warm_steps; ++i) time_of(step);
  const std::uint64_t kernels = russet::counters().kernels_run;
  std::vector<double> times{time_of(step)};
  result.kernels = russet::counters().kernels_run - kernels;
  double spent = times[0];
  while ((spent < seconds || times.size() < least_steps) && times.size() < most_steps) {
    times.push_back(time_of(step));
    spent += times.back();
  }
  result.median_ms = median(times) * 1e3;
  result.peak_bytes = russet::peak_memory(device) - before;
  result.resident_bytes = resident.growth();
  return result;
}

Json line_of(const std::string& model, const std::string& phase, const std::string& precision,
             const Arguments& arguments, const MachineRate& rate) {
  const russet::train::Workload workload = workload_of(model, precision, arguments.batch);
  const russet::Device device(arguments.device);
  // Planned afterwards: the first step's time includes compiling.
  const Measured measured = measure(workload, phase_of(phase), device, arguments.seconds);
  const russet::train::Forecast planned = russet::train::forecast(workload, device, phase_of(phase));
  return {{"model", model},
          {"phase", phase},
          {"precision", precision},
          {"batch", workload.batch},
          {"device", arguments.device},
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
             line["first_step_s"].get<double>(), russet::train::format_size(line["planned_bytes"].get<std::uint64_t>()),
             russet::train::format_size(line["peak_bytes"].get<std::uint64_t>()), line["kernels"].get<std::uint64_t>(),
             line["utilisation"].get<double>() * 100);
  std::fflush(stdout);
}

std::vector<std::string> one_or(const std::string& word, std::vector<std::string> all) {
  return word.empty() ? std::move(all) : std::vector<std::string>{word};
}

void run(const Arguments& arguments) {
  const russet::Device device = require_device(arguments.device);
  const std::vector<std::string> models = arguments.models.empty() ? russet::models::list_models() : arguments.models;
  const std::vector<std::string> phases = one_or(arguments.phase, {"train", "eval"});
  const std::vector<std::string> precisions = one_or(arguments.precision, {"fp32", "bf16"});
  // Mistakes are said before anything is measured.
  for (const std::string& model : models) workload_of(model, precisions[0], arguments.batch);
  for (const std::string& phase : phases) phase_of(phase);
  if (!(arguments.seconds >= 0 && arguments.seconds <= 3600)) {
    throw russet::ValueError(fmt::format("--seconds {}: it must be within 0 and 3600", arguments.seconds));
  }
  std::vector<MachineRate> rates;
  for (const std::string& precision : precisions) {
    rates.push_back(measure_machine(device, precision_type(precision)));
  }
  if (!arguments.json) {
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
        if (arguments.json) {
          print_json(line);
        } else {
          print_row(line);
        }
      }
    }
  }
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand("bench", "How fast models train and evaluate, on made-up data");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("MODEL", arguments->models, "Of " + join(russet::models::list_models()) + " [all]");
  command->add_option("--phase", arguments->phase, "train or eval [both]");
  command->add_option("--precision", arguments->precision, "fp32 or bf16 [both]");
  command->add_option("--batch", arguments->batch, "Samples in a batch [by model]");
  command->add_option("--seconds", arguments->seconds, "How long to measure each")->capture_default_str();
  add_device_option(*command, arguments->device);
  command->add_flag("--json", arguments->json, "A JSON line each");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
