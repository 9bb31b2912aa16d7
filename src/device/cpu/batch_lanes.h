#pragma once
// Convolutions of few channels: vectors lie along the batch. Channels would fill a part of a vector, while a batch of
// 32 or 64 fills it whatever the channels, the window, its stride or its dilation; and padding is skipped, not
// computed.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// All three contractions of a convolution, in float32.
Verdict judge_batch_lanes(const compile::Primitive& primitive);
/// The same where it was measured to be faster.
Verdict judge_faster_batch_lanes(const compile::Primitive& primitive);

}  // namespace russet::cpu
