#pragma once
// What a run does where its options leave it open.
#include <russet/dtype.h>
#include <russet/optim/make_optimizer.h>

#include <string_view>

#include "options.h"

namespace russet::app {

/// Fills in what follows from the model's recipe. Throws ValueError for what cannot be meant, DeviceError for a name
/// that is no device's.
Arguments with_recipe(Arguments arguments);

/// The optimizer of completed arguments.
optim::OptimizerChoice optimizer_of(const Arguments& arguments);

/// The type of matrix work by its name: fp32, bf16 or fp16.
DType precision_type(std::string_view word);

/// Samples in a batch: the option's, or the recipe's.
std::int64_t batch_of(const Arguments& arguments);

/// Threads that prepare batches; -1: by the number of cores.
int workers_of(const Arguments& arguments);

}  // namespace russet::app
