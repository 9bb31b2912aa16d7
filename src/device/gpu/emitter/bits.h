#pragma once
// Values that a group only moves are handled as integers of their size, whatever their type.
#include "compile/group.h"

namespace russet::gpu {

/// Makes integers of those values of a group that are loaded or constant and only selected and stored, so that types of
/// one size share kernels. Before:                     After:
///     v0 = load bfloat16 x                                v0 = load int16 x
///     v1 = constant bfloat16 1.0                          v1 = constant int16 0x3f80
///     v3 = where(v2, v0, v1)                              v3 = where(v2, v0, v1)
///     store bfloat16 y, v3                                store int16 y, v3
void move_bits(compile::Group& group);

}  // namespace russet::gpu
