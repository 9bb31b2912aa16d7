#pragma once
// Convolutions as matrix products by oneDNN: windows are copied next to each other, some images at a time. oneDNN's own
// convolutions are slow on small planes, and its weight gradients in bfloat16 everywhere.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// Channels-last operands, no groups, no epilogue; input gradients with stride 1.
Verdict judge_columns(const compile::Primitive& primitive);

/// The same where it was measured to be faster than oneDNN's convolution.
Verdict judge_faster_columns(const compile::Primitive& primitive);

}  // namespace russet::cpu
