#pragma once
// Layouts of activations, and what oneDNN takes of them.
#include <string>

#include "compile/step.h"

namespace russet::cpu {

/// Strides of [n, c, h, w] stored as [n, h, w, c].
inline Strides channels_last(const Shape& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};
}

/// Strides of [n, c, h, w] stored as [c, h, w, n]: a batch of neighbours fills vectors whatever the number of channels.
inline Strides batch_last(const Shape& sizes) {
  return {1, sizes[0] * sizes[3] * sizes[2], sizes[0] * sizes[3], sizes[0]};
}

/// Whether the operand has these strides on every axis that has more than one element.
inline bool has_strides(const compile::Operand& operand, const Strides& strides) {
  for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
    if (operand.sizes[axis] != 1 && operand.access.strides[axis] != strides[axis]) return false;
  }
  return true;
}

inline bool is_channels_last(const compile::Operand& operand) {
  return has_strides(operand, channels_last(operand.sizes));
}

/// Why oneDNN is not asked about a contraction: its types, empty operands, sizes beyond 2^31. Empty if it is.
std::string why_not_onednn(const compile::Primitive& contraction);

}  // namespace russet::cpu
