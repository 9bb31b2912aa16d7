#pragma once
// Allocates registers: where each value of a program lies in scratch memory.
#include "device/cpu/group/tile_program.h"

namespace russet::cpu::tiles {

/// What a value of a program holds, and how much of a tile it fills.
struct Value {
  TileType tile_type = TileType::f32;
  Form form = Form::full;
};

/// Gives each value of `program` a register, sharing memory between values that do not live at the same time, and sets
/// program.scratch_bytes.
void place_registers(TileProgram& program, const std::vector<Value>& values);

}  // namespace russet::cpu::tiles
