#pragma once
// --mixup and --cutmix.
#include <russet/data/loader.h>

#include "options.h"
#include "run/task.h"

namespace russet::app {

/// How the batches of a task are mixed. Throws ValueError where there is nothing to mix.
data::Mixing mixing_of(const Arguments& arguments, const Task& task);

}  // namespace russet::app
