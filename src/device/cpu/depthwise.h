#pragma once
// Weight gradients of depthwise convolutions, which oneDNN computes by loops for kernels of 5 and more.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// Channels-last float32 and bfloat16, one input and one output channel a group.
Verdict judge_depthwise_weight(const compile::Primitive& primitive);

}  // namespace russet::cpu
