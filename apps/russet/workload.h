#pragma once
// Which step of which model to look at: bench, plan and profile share this.
#include <russet/train/workload.h>

#include <string>

#include "options.h"

namespace russet::app {

train::Phase phase_of(std::string_view word);

/// A benchmark of the model, of the sizes that `arguments` name, with its own batch. Throws ValueError for an unknown
/// model.
train::Workload benchmark_of(const std::string& model, std::string_view precision, const Arguments& arguments);

/// That of the model, precision and batch that `arguments` name.
train::Workload workload_of(const Arguments& arguments);

}  // namespace russet::app
