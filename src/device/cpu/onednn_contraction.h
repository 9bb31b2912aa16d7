#pragma once
// oneDNN's implementations of contractions, in float32 and bfloat16.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// Products of matrices that are row-major or transposed, with or without batch axes.
Verdict judge_onednn_matmul(const compile::Primitive& primitive);
/// Batches of matrices with gaps between rows (the heads of an attention), which oneDNN does not take: copied to arrays
/// without gaps.
Verdict judge_onednn_packed(const compile::Primitive& primitive);

/// Convolutions on the layouts that activations have; weights are copied to oneDNN's.
Verdict judge_onednn_convolution(const compile::Primitive& primitive);

/// Convolutions on oneDNN's blocked layouts; activations are copied there and back.
Verdict judge_onednn_blocked(const compile::Primitive& primitive);
/// The same where it was measured to be faster.
Verdict judge_faster_blocked(const compile::Primitive& primitive);

}  // namespace russet::cpu
