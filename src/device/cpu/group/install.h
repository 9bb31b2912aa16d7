#pragma once
// The files that fill the table of kernels.
#include "device/cpu/group/kernels.h"

namespace russet::cpu::tiles {

void install_elementwise_f32(Kernels& kernels);
void install_elementwise_f64(Kernels& kernels);
void install_elementwise_i32(Kernels& kernels);
void install_elementwise_i64(Kernels& kernels);
void install_casts(Kernels& kernels);
void install_memory(Kernels& kernels);
void install_reductions(Kernels& kernels);
void install_random(Kernels& kernels);

}  // namespace russet::cpu::tiles
