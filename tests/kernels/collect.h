#pragma once
// The kernels that there are: what plans of the models, samples of every primitive and random groups make of templates
// and emitter, without running anything.
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "device/gpu/library.h"

namespace russet::kernels {

/// A GPU that kernels are chosen for. Where NVIDIA's libraries are missing, russet's own kernels do what these would.
enum class Gpu { apple, nvidia, nvidia_without_libraries };

/// Training and evaluation of every model, in float32 and with autocast to bfloat16, at the widths that users train.
std::vector<gpu::FunctionPtr> functions_of_models(Gpu gpu);

/// The conformance suite's samples of every primitive, in every type and layout.
std::vector<gpu::FunctionPtr> functions_of_primitives(Gpu gpu);

/// Random groups of all kinds.
std::vector<gpu::FunctionPtr> functions_of_random_groups(Gpu gpu);

/// A network's first convolution in bfloat16, of an image of three channels with lines of `width` pixels, to 64
/// channels, and the gradient for its weight.
std::vector<gpu::FunctionPtr> functions_of_first_convolution(Gpu gpu, std::int64_t width, std::int64_t kernel,
                                                             std::int64_t stride);

/// All of the first three for all of the GPUs, each once.
std::vector<gpu::FunctionPtr> all_functions(std::initializer_list<Gpu> gpus);

}  // namespace russet::kernels
