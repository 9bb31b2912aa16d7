#pragma once
// Places values in scratch memory.
#include "device/cpu/group/program.h"

namespace russet::cpu::tiles {

/// What a value of a program holds, and how much of a tile it fills.
struct Value {
  Lane lane = Lane::f32;
  Form form = Form::full;
};

/// Gives each value of `program` a place, sharing memory between values that do not live at the same time, and sets
/// program.scratch_bytes.
void place_registers(TileProgram& program, const std::vector<Value>& values);

}  // namespace russet::cpu::tiles
