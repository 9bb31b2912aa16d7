#pragma once
// By what kernels for NVIDIA's GPUs are chosen, whether there is one or plans are only made.
#include "device/gpu/launch.h"

namespace russet::cuda {

/// No watchdog ends long launches of a GPU that shows no picture; on one that does, others shall still get their turn.
inline constexpr double longest_launch = 0.5;
/// Measured on an H100: with 1, 2 and 4 MiB models train within 1 % of each other (three runs each; bert_base 1.6 %
/// slower with 4), with 16 resnet18_cifar takes 4 % longer. A launch less saves what moving this much takes.
inline constexpr std::size_t most_shared_bytes = std::size_t{1} << 20;

/// Measured on H200s, with temporaries apart at any size: mlp trains 20 % faster in bfloat16 (6.6 MB instead of 5.3)
/// and resnet18_cifar 8 % (364 MB instead of 333; in float32 4 %, 945 MB instead of 691); bert_base, efficientnet_b0
/// and resnet50 (2 to 6 GB) 1 to 2 %, vit_b_16 (4.6 GB) 1 % slower, vgg16 as fast in 70 % more memory.
inline constexpr std::size_t bytes_apart = std::size_t{1} << 30;

/// What a threadgroup is granted beside its arrays, if the launch asks for it: of `most` bytes in all (CUDA C++
/// Programming Guide, "Compute Capabilities": 227 KiB of capability 9.0, 99 or more of 8.0 and later). Arrays begin at
/// multiples of up to 1,024.
constexpr std::uint32_t sample_memory_of(std::uint32_t group_memory, std::uint32_t most) {
  return most > group_memory ? (most - group_memory) / 1024 * 1024 : 0;
}

/// Of a GPU of the chip; `max_threads` and `group_memory` of a threadgroup as all these GPUs grant them.
inline gpu::Properties properties_of(const Chip& chip) {
  gpu::Properties properties;
  properties.family = chip.family;
  properties.max_threads = 1024;
  properties.group_memory = 49152;
  properties.chip = chip;
  properties.longest_launch = longest_launch;
  properties.tables_hold_addresses = true;
  // By training on an H100: with 0.1, as with 1, resnet50 and efficientnet_b0 take up to 8 % longer.
  properties.cost_of_operations = 0.3;
  properties.takes_prologues = false;  // they cost resnet50's training 1 ms of 28, lenet5's 0.1 of 0.37
  properties.most_shared_bytes = most_shared_bytes;
  properties.bytes_apart = bytes_apart;
  properties.keeps_positions = true;
  properties.packs_masks = true;
  properties.runs_samples = true;
  properties.sample_memory = sample_memory_of(properties.group_memory, chip.family == "sm_90" ? 232448 : 101376);
  properties.has_fragments = true;
  properties.has_warpgroups = properties.has_bulk_copies = chip.family == "sm_90";
  properties.row_elements = 32;
  properties.kept_values = 128;
  return properties;
}

}  // namespace russet::cuda
