#pragma once
// Bundles that run sample by sample: one launch with a threadgroup for each sample, which runs its part of each member
// one after the other, a barrier between two. What members hand on lies in threadgroup memory, as far as there is room,
// else in device memory. Small networks are such chains: each of their steps takes less time than a launch that waits
// for the one before.
#include <optional>
#include <vector>

#include "compile/step.h"
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

/// Threads of the threadgroup of a sample.
inline constexpr std::uint32_t sample_threads = 1024;

/// Smaller batches have no such launches: sizes are part of a kernel's text, which takes a second to compile.
inline constexpr std::int64_t fewest_samples = 32;

/// How long a step takes by itself and as a member, whose samples are one core's work each, by a model of the chip.
compile::SampleTimes modelled_sample_times(const compile::Step& step, std::int64_t samples,
                                           const Properties& properties);

/// Whether a launch can be divided among the samples: units of it, or a threadgroup for each.
bool divides_by_samples(const Call& call, std::int64_t samples);

/// The launches of a bundle's members as one, in their order; nullopt if that would have more buffers or values than a
/// launch may.
std::optional<Call> sample_call(const std::vector<Call>& calls, const compile::Bundle& bundle,
                                const GpuContext& context);

}  // namespace russet::gpu
