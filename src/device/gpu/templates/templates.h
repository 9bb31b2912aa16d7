#pragma once
// The hand-written kernels: each accepts a primitive or says why not.
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

/// Contractions of floating types by tiles, each through threadgroup memory and the matrices of simdgroups.
Verdict judge_tiles(const compile::Primitive& primitive, const GpuContext& context);
/// Contractions of any type, an element (or a part of its sum) a thread: integers, depthwise, a few rows or columns.
Verdict judge_elements(const compile::Primitive& primitive, const GpuContext& context);
/// max_pool, max_unpool, sum_pool, sum_unpool.
Verdict judge_windows(const compile::Primitive& primitive, const GpuContext& context);
/// take, put.
Verdict judge_indexing(const compile::Primitive& primitive, const GpuContext& context);
/// argsort, cumsum.
Verdict judge_sort(const compile::Primitive& primitive, const GpuContext& context);
Verdict judge_scan(const compile::Primitive& primitive, const GpuContext& context);

/// Attention and its gradients in blocks, for heads of at most 128; and an element a thread, for all.
Verdict judge_attention_blocks(const compile::Primitive& primitive, const GpuContext& context);
Verdict judge_attention_elements(const compile::Primitive& primitive, const GpuContext& context);

}  // namespace russet::gpu
