#pragma once
// The kernels that there are: what plans of the models, samples of every primitive and random groups make of templates
// and emitter, without running anything.
#include <vector>

#include "device/gpu/library.h"

namespace russet::kernels {

/// Training and evaluation of every model, in float32 and with autocast to bfloat16, at the widths that users train.
std::vector<gpu::FunctionPtr> functions_of_models();

/// The conformance suite's samples of every primitive, in every type and layout.
std::vector<gpu::FunctionPtr> functions_of_primitives();

/// Random groups of all kinds.
std::vector<gpu::FunctionPtr> functions_of_random_groups();

/// All of these, each once.
std::vector<gpu::FunctionPtr> all_functions();

}  // namespace russet::kernels
