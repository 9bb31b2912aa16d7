#pragma once
// Layouts of activations, and what oneDNN takes of them.
#include <string>

#include "compile/layouts.h"

namespace russet::cpu {

using compile::channels_last;
using compile::has_strides;

/// Strides of [n, c, h, w] stored as [c, h, w, n]: a batch of neighbours fills vectors whatever the number of channels.
inline Strides batch_last(const Shape& sizes) {
  return {1, sizes[0] * sizes[3] * sizes[2], sizes[0] * sizes[3], sizes[0]};
}

inline bool is_channels_last(const compile::Operand& operand) {
  return has_strides(operand, channels_last(operand.sizes));
}

/// Why oneDNN is not asked about a contraction: its types, empty operands, sizes beyond 2^31. Empty if it is.
std::string why_not_onednn(const compile::Primitive& contraction);

}  // namespace russet::cpu
