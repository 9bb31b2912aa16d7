#pragma once
// The kernels that there are: what plans of the models, samples of every primitive and random groups make of templates
// and emitter, without running anything.
#include <functional>
#include <initializer_list>
#include <vector>

#include "device/gpu/library.h"

namespace russet::kernels {

/// A GPU that kernels are chosen for: an H200, or one of those with the least that russet runs on, an RTX 3090. Where
/// NVIDIA's libraries are missing, russet's own kernels do what these would.
enum class Gpu { apple, nvidia, nvidia_without_libraries, nvidia_ampere };

/// Training and evaluation of every model, in float32 and with autocast to bfloat16, at the widths that users train.
std::vector<gpu::FunctionPtr> functions_of_models(Gpu gpu);

/// The conformance suite's samples of every primitive, in every type and layout.
std::vector<gpu::FunctionPtr> functions_of_primitives(Gpu gpu);

/// Random groups of all kinds.
std::vector<gpu::FunctionPtr> functions_of_random_groups(Gpu gpu);

/// What `work`, on the null device, makes the GPU's engine plan.
std::vector<gpu::FunctionPtr> functions_of_plans(Gpu gpu, const std::function<void()>& work);

/// All of models, primitives and random groups for all of the GPUs, each once.
std::vector<gpu::FunctionPtr> all_functions(std::initializer_list<Gpu> gpus);

}  // namespace russet::kernels
