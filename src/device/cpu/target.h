#pragma once
// What the compiler asks the CPU.
#include "compile/step.h"

namespace russet::cpu {

const compile::Target& target();

}  // namespace russet::cpu
