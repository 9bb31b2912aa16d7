#include "workload.h"

namespace app {

using russet::train::Phase;
using russet::train::Workload;

void add_workload_options(CLI::App& command, WorkloadArguments& arguments) {
  add_model_option(command, arguments.model);
  command.add_option("--phase", arguments.phase, "train or eval")->capture_default_str();
  command.add_option("--batch", arguments.batch, "Samples in a batch [by model]");
  add_precision_option(command, arguments.precision);
  add_device_option(command, arguments.device);
}

Phase phase_of(const std::string& word) {
  if (word == "train") return Phase::train;
  if (word == "eval") return Phase::eval;
  throw russet::ValueError(fmt::format("--phase {}: the choices are train, eval", word));
}

Workload workload_of(const std::string& model, const std::string& precision, std::int64_t batch) {
  if (batch < 0 || batch > 1'000'000) {
    throw russet::ValueError(fmt::format("--batch {}: it must be at least 1 and at most 1000000", batch));
  }
  Workload workload = russet::train::benchmark_workload(model);
  workload.lower_precision = precision_type(precision) == russet::DType::bfloat16;
  if (batch > 0) workload.batch = batch;
  return workload;
}

}  // namespace app
