#pragma once
// Epilogues that cases of kernels have, as groups.
#include "compile/step.h"

namespace russet::gputest {

/// relu(result + bias) as a contraction's epilogue; `bias` is one line, along an axis of the output.
compile::Group bias_and_relu(const compile::Primitive& primitive, const compile::Operand& bias, int axis);

/// state += result; output -= state; as a contraction's epilogue. The old values have slots of their own.
compile::Group update(const compile::Primitive& primitive, const compile::Operand& state, std::int32_t old_state,
                      std::int32_t old_output);

/// The result and the sum of each of its columns, as a contraction's epilogue.
compile::Group sums_of_columns(const compile::Primitive& primitive, const compile::Operand& sums,
                               ops::Op reduction = ops::Op::sum);

}  // namespace russet::gputest
