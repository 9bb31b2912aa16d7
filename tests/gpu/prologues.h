#pragma once
// Prologues that cases of kernels have, as groups.
#include "compile/step.h"

namespace russet::gputest {

/// x + 1 as a contraction's prologue; the input then lies nowhere. What is computed is stored like the input in a slot
/// of its own, or, if that is -1, not at all. `margin`: elements of the memory before the input's own.
compile::Group plus_one(compile::Operand& input, std::int32_t stored, std::int64_t margin);

/// A cast from `planes` as a convolution's prologue; the image then lies nowhere.
compile::Group cast_of(compile::Operand& image, const compile::Operand& planes);

}  // namespace russet::gputest
