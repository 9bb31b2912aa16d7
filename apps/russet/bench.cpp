// russet bench: how fast models train and evaluate, on made-up data.
#include <russet/io/file.h>
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/version.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>

#include "bench/bench_page.h"
#include "bench/measurement.h"
#include "command.h"
#include "folder.h"
#include "machine.h"
#include "run/defaults.h"
#include "workload.h"

namespace russet::app {
namespace {

std::vector<std::string> one_or(const std::string& word, std::vector<std::string> all) {
  return word.empty() ? std::move(all) : std::vector<std::string>{word};
}

DeviceInfo info_of(Device device) {
  for (const DeviceInfo& info : devices()) {
    if (info.device == device) return info;
  }
  return {};
}

using Facts = std::vector<std::pair<std::string, std::string>>;

/// What is measured: everything that the options leave open, of each model all phases, of each phase all devices.
class Benchmark {
 public:
  /// Throws what is wrong with the options, before anything is measured.
  explicit Benchmark(const Arguments& arguments);

  /// Measures all, with a line and a new page for each. Where nothing could be measured, throws the first failure.
  void run();

 private:
  struct Place {
    std::string name;  // of a device
    Device device{};
    std::string hardware;
    std::optional<std::size_t> memory{};         // bytes that a step may need
    std::map<std::string, MachineRate> rates{};  // by precision
  };

  void add_places();
  void measure_machines();
  std::vector<std::int64_t> batches_of(const std::string& model) const;
  void run_case(const Place& place, BenchCase what);
  std::optional<double> speedup_of(const Measurement& measurement) const;
  void print(const Measurement& measurement) const;
  void print_head() const;
  Facts facts() const;
  std::filesystem::path page_path() const;
  void write_page() const;

  bool is_suite() const { return arguments_.has("suite"); }
  std::string baseline() const { return arguments_.has("baseline") ? arguments_.text("baseline") : "cpu"; }

  const Arguments& arguments_;
  std::vector<std::string> models_;
  std::vector<std::string> phases_;
  std::vector<std::string> precisions_;
  std::vector<Place> places_;  // the baseline first
  std::vector<Measurement> measurements_;
  std::exception_ptr failure_;  // the first one
};

Benchmark::Benchmark(const Arguments& arguments)
    : arguments_(arguments),
      models_(arguments.has("model") ? arguments.texts("model") : models::list_models()),
      phases_(one_or(arguments.text("phase"), {"train", "eval"})),
      precisions_(one_or(arguments.text("precision"), {"fp32", "bf16"})) {
  for (const std::string& model : models_) models::find_model(model);
  if (is_suite() && !arguments.has("out")) throw ValueError("--suite writes a page: --out DIR says where");
  if (is_suite() && arguments.integers("batch").size() > 1) {
    throw ValueError("--suite takes one --batch, or each model's own; several are measured without --suite");
  }
  if (!is_suite() && arguments.has("baseline")) throw ValueError("--baseline goes with --suite");
  add_places();
}

void Benchmark::add_places() {
  std::vector<std::string> names = arguments_.words("device");
  if (is_suite()) names.insert(names.begin(), baseline());
  for (const std::string& given : names) {
    const Device device = require_device(given);
    const std::string name = to_string(device);
    if (std::any_of(places_.begin(), places_.end(), [&](const Place& place) { return place.name == name; })) continue;
    const DeviceInfo info = info_of(device);
    Place place{name, device, info.name};
    if (arguments_.has("memory")) {
      place.memory = arguments_.bytes("memory");
    } else if (info.memory_bytes > 0) {
      place.memory = info.memory_bytes;
    }
    places_.push_back(std::move(place));
  }
}

void Benchmark::measure_machines() {
  for (Place& place : places_) {
    for (const std::string& precision : precisions_) {
      const MachineRate rate = measure_machine(place.device, precision_type(precision));
      place.rates.emplace(precision, rate);
      if (arguments_.flag("json")) continue;
      fmt::print("{} of this machine, {}: {:.1f} GFLOP/s, {:.1f} GB/s\n", place.name, precision,
                 rate.operations_per_s * 1e-9, rate.bytes_per_s * 1e-9);
    }
  }
}

std::vector<std::int64_t> Benchmark::batches_of(const std::string& model) const {
  if (arguments_.has("batch")) return arguments_.integers("batch");
  return {models::find_model(model).benchmark.batch};
}

void Benchmark::run() {
  if (arguments_.has("out")) make_folder(arguments_.text("out"));
  write_page();
  measure_machines();
  if (!arguments_.flag("json")) print_head();
  for (const std::string& model : models_) {
    for (const std::string& phase : phases_) {
      for (const Place& place : places_) {
        for (const std::string& precision : precisions_) {
          for (const std::int64_t batch : batches_of(model)) {
            run_case(place, {model, phase, precision, place.name, batch});
          }
        }
      }
    }
  }
  const bool any = std::any_of(measurements_.begin(), measurements_.end(),
                               [](const Measurement& each) { return each.times.has_value(); });
  if (!any && failure_) std::rethrow_exception(failure_);
  if (arguments_.has("out") && !arguments_.flag("json")) {
    fmt::print("page        {}\n", page_path().string());
  }
}

void Benchmark::run_case(const Place& place, BenchCase what) {
  Measurement measurement{std::move(what)};
  const BenchCase& asked = measurement.what;
  try {
    train::Workload workload = benchmark_of(asked.model, asked.precision, arguments_);
    workload.batch = asked.batch;
    const Timing timing{arguments_.real("seconds"), arguments_.flag("record"), place.memory};
    measurement.times = measure(workload, phase_of(asked.phase), place.device, timing, place.rates.at(asked.precision));
  } catch (const std::exception& error) {
    measurement.error = error.what();
    if (!failure_) failure_ = std::current_exception();
  }
  measurement.speedup = speedup_of(measurement);
  print(measurement);
  measurements_.push_back(std::move(measurement));
  write_page();
}

std::optional<double> Benchmark::speedup_of(const Measurement& measurement) const {
  if (!is_suite() || !measurement.times) return std::nullopt;
  const BenchCase& what = measurement.what;
  if (what.device == places_[0].name && what.precision == precisions_[0]) return 1;
  for (const Measurement& other : measurements_) {
    const bool is_baseline = other.what.model == what.model && other.what.phase == what.phase &&
                             other.what.device == places_[0].name && other.what.precision == precisions_[0];
    if (is_baseline && other.times) return measurement.times->samples_per_s / other.times->samples_per_s;
  }
  return std::nullopt;
}

void Benchmark::print_head() const {
  fmt::print("{:<16} {:<6} {:<9} {:<5} {:>6} {:>10} {:>11} {:>8} {:>12} {:>12} {:>8} {:>8}{}\n", "model", "phase",
             "device", "prec", "batch", "ms", "samples/s", "first s", "planned", "peak", "kernels", "of peak",
             is_suite() ? "  speed-up" : "");
  std::fflush(stdout);
}

void Benchmark::print(const Measurement& measurement) const {
  if (arguments_.flag("json")) return print_json(to_json(measurement));
  const BenchCase& what = measurement.what;
  fmt::print("{:<16} {:<6} {:<9} {:<5} {:>6} ", what.model, what.phase, what.device, what.precision, what.batch);
  if (measurement.times) {
    const BenchTimes& times = *measurement.times;
    fmt::print("{:>10.3f} {:>11.1f} {:>8.2f} {:>12} {:>12} {:>8} {:>6.1f} %", times.median_ms, times.samples_per_s,
               times.first_s, format_size(times.planned_bytes), format_size(times.peak_bytes), times.kernels,
               times.utilisation * 100);
    if (measurement.speedup) fmt::print("  {:>8.2f}", *measurement.speedup);
  } else {
    fmt::print("{}", measurement.error);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

Facts Benchmark::facts() const {
  Facts facts;
  for (const Place& place : places_) {
    facts.emplace_back(place.name, place.hardware);
    for (const auto& [precision, rate] : place.rates) {
      facts.emplace_back(fmt::format("{}, {}", place.name, precision),
                         fmt::format("{:.1f} GFLOP/s in a large matrix product, {:.1f} GB/s",
                                     rate.operations_per_s * 1e-9, rate.bytes_per_s * 1e-9));
    }
  }
  facts.emplace_back("threads", fmt::format("{}", get_num_threads()));
  facts.emplace_back("width of models", fmt::format("{:g}", arguments_.has("width") ? arguments_.real("width") : 1));
  facts.emplace_back("seconds for each", fmt::format("{:g}", arguments_.real("seconds")));
  facts.emplace_back("russet", std::string(version()));
  return facts;
}

std::filesystem::path Benchmark::page_path() const {
  return std::filesystem::path(arguments_.text("out")) / "bench.html";
}

/// Again after each measurement: a benchmark that is ended early leaves what it had.
void Benchmark::write_page() const {
  if (!arguments_.has("out")) return;
  BenchPage page;
  page.picture = is_suite() ? BenchPage::Picture::speedups : BenchPage::Picture::curves;
  page.title = is_suite() ? fmt::format("russet: the {} suite", arguments_.text("suite"))
                          : fmt::format("russet bench: {}", join(models_));
  page.baseline_device = places_[0].name;
  page.baseline_precision = precisions_[0];
  page.measurements = measurements_;
  page.facts = facts();
  io::write_file_atomically(page_path(), to_html(page));
}

}  // namespace

void run_bench(const Arguments& arguments) { Benchmark(arguments).run(); }

}  // namespace russet::app
