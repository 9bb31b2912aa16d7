#include "workload.h"

#include "run/defaults.h"
#include "run/model_config.h"

namespace russet::app {

train::Phase phase_of(std::string_view word) { return word == "eval" ? train::Phase::eval : train::Phase::train; }

train::Workload benchmark_of(const std::string& model, std::string_view precision, const Arguments& arguments) {
  train::Workload workload = train::benchmark_workload(model);
  workload.precision = precision_type(precision);
  if (arguments.has("config")) {
    workload.options.config = read_model_config(arguments.text("config"), models::find_model(model));
  }
  if (arguments.has("width")) workload.options.width = arguments.real("width");
  return workload;
}

train::Workload workload_of(const Arguments& arguments) {
  train::Workload workload = benchmark_of(arguments.text("model"), arguments.text("precision"), arguments);
  if (arguments.has("batch")) workload.batch = arguments.integer("batch");
  return workload;
}

}  // namespace russet::app
