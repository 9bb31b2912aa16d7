#pragma once
// Layouts that devices ask for, and of what.
#include "compile/step.h"

namespace russet::compile {

/// Input i of a primitive, or its output, -1.
inline const Operand& operand_of(const Primitive& primitive, int operand) {
  return operand < 0 ? primitive.output : primitive.inputs[static_cast<std::size_t>(operand)];
}

/// Whether an operand of a convolution, or of a gradient of one, is the weight or its gradient.
inline bool is_weight(const Primitive& convolution, int operand) {
  return operand == (convolution.op == ops::Op::convolution_weight ? -1 : 1);
}

/// Strides of [n, c, h, w] stored as [n, h, w, c].
inline Strides channels_last(const Shape& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};
}

/// Whether two sets of strides say the same on every axis that has more than one element.
inline bool same_strides(const Shape& sizes, const Strides& a, const Strides& b) {
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] != 1 && a[axis] != b[axis]) return false;
  }
  return true;
}

/// Whether the operand has these strides.
inline bool has_strides(const Operand& operand, const Strides& strides) {
  return same_strides(operand.sizes, operand.access.strides, strides);
}

}  // namespace russet::compile
