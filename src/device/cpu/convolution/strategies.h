#pragma once
// Our own strategies for convolutions, where oneDNN's are slow. All work on a Convolution, skip or fill borders by its
// runs of taps, split their work by Workers and lay out their scratch memory by a Workspace; they differ in which axis
// lies along vectors, in their inner loop, and in what they accept. `judge_faster_...` accepts what `judge_...` does
// where it was measured to be faster than oneDNN.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// Vectors lie along the batch. Channels would fill a part of a vector, while a batch of 32 or 64 fills it whatever the
/// channels, the window, its stride or its dilation. All three contractions, in float32.
Verdict judge_batch_lanes(const compile::Primitive& primitive);
Verdict judge_faster_batch_lanes(const compile::Primitive& primitive);
/// Its kernel for weight gradients.
KernelPtr make_batch_weight(const compile::Primitive& primitive);

/// Windows are copied next to each other, some images at a time, and multiplied by oneDNN's matrix product: oneDNN's
/// own convolutions are slow on small planes, and its weight gradients in bfloat16 everywhere. Channels-last operands,
/// no groups, no epilogue; input gradients with stride 1.
Verdict judge_faster_im2col(const compile::Primitive& primitive);

/// Vectors lie along the channels of a depthwise convolution: weight gradients, which oneDNN computes by plain loops
/// for kernels of 5 and more. Channels-last float32 and bfloat16.
Verdict judge_depthwise_weight(const compile::Primitive& primitive);

}  // namespace russet::cpu
