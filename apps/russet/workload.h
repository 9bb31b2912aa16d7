#pragma once
// The arguments that say which step of which model to look at: bench, plan and profile share them.
#include <russet/train/workload.h>

#include <string>

#include "command.h"

namespace app {

struct WorkloadArguments {
  std::string model;
  std::string phase = "train";
  std::string precision = "fp32";
  std::string device = "cpu";
  std::int64_t batch = 0;  // 0: what benchmarks use
};

void add_workload_options(CLI::App& command, WorkloadArguments& arguments);

/// Throws ValueError for a word or number that is no choice.
russet::train::Phase phase_of(const std::string& word);
russet::train::Workload workload_of(const std::string& model, const std::string& precision, std::int64_t batch);

}  // namespace app
