#pragma once
// Which step of which model to look at: bench, plan and profile share this.
#include <russet/train/workload.h>

#include <string>

#include "options.h"

namespace russet::app {

train::Phase phase_of(std::string_view word);

/// A benchmark of the model. `arguments` may name another size of the batch. Throws ValueError for an unknown model.
train::Workload benchmark_of(const std::string& model, std::string_view precision, const Arguments& arguments);

}  // namespace russet::app
