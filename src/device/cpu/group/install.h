#pragma once
// The files that fill the table of loops.
#include "device/cpu/group/loops.h"

namespace russet::cpu::tiles {

void install_elementwise_f32(Loops& loops);
void install_elementwise_f64(Loops& loops);
void install_elementwise_i32(Loops& loops);
void install_elementwise_i64(Loops& loops);
void install_casts(Loops& loops);
void install_memory(Loops& loops);
void install_reductions(Loops& loops);
void install_random(Loops& loops);

}  // namespace russet::cpu::tiles
