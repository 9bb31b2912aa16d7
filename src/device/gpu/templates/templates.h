#pragma once
// The hand-written kernels: each accepts a primitive or says why not.
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

inline constexpr const char* split_product_name = "split product";
/// Contractions of float32 on tensor cores, where both factors are read in vectors.
Verdict judge_split_product(const compile::Primitive& primitive, const GpuContext& context);
/// Whether that is faster on such a GPU than a library that does `library_rate` operations of float32 a second.
bool prefers_split_product(const compile::Primitive& primitive, const Properties& properties, double library_rate);
/// Whether a convolution of few channels, or the gradient for its weight, should have as many as vectors need for them.
bool wants_channels_in_vectors(const compile::Primitive& convolution, const Properties& properties);
/// Whether a contraction has so little work that what a library does around it takes longer: a small product, or a
/// convolution of few channels, which it would pad.
bool is_small_product(const compile::Primitive& primitive);
Verdict judge_small_product(const compile::Primitive& primitive, const GpuContext& context);
/// Matrix products whose rows are samples, convolutions and the gradients of their images, of floating types and little
/// work: with a threadgroup of sample_threads (samples.h) for each sample, a part of a launch that goes sample by
/// sample.
Verdict judge_sample_product(const compile::Primitive& primitive, const GpuContext& context);
/// Contractions of floating types by tiles, each through threadgroup memory and the matrices of simdgroups.
Verdict judge_tiles(const compile::Primitive& primitive, const GpuContext& context);
/// Whether a convolution, or a gradient of one, is of the kind that judge_depthwise() takes if its operands lie well: a
/// channel of the result for each of the input's, an even number of them, and windows that registers hold.
bool is_depthwise(const compile::Primitive& primitive);
/// Depthwise convolutions and their gradients, where neighbouring channels lie side by side.
Verdict judge_depthwise(const compile::Primitive& primitive, const GpuContext& context);
/// Whether a convolution, or the gradient for its weight, is of the kind that judge_stem() takes if its operands lie
/// well: of 16 bits, from an image of few channels, as the first one of a network is.
bool is_stem(const compile::Primitive& primitive);
/// Those, where neighbouring channels lie side by side and tensor cores multiply fragments. A convolution rounds an
/// image of float32 planes itself.
Verdict judge_stem(const compile::Primitive& primitive, const GpuContext& context);
/// Whether judge_stationary_product() takes a bare contraction, and is faster than a library: for many rows and
/// columns.
bool is_stationary_product(const compile::Primitive& primitive);
/// Products, convolutions of single pixels and the gradients of their images, in 16 bits, of a depth of at most 128:
/// memory is their limit. Where rows' elements lie side by side and tensor cores multiply fragments.
Verdict judge_stationary_product(const compile::Primitive& primitive, const GpuContext& context);
/// Whether judge_warpgroup_product() takes a bare contraction on such a GPU, and is as fast as a library: for many rows
/// and columns, which fill the cores. Not for gradients of images.
bool prefers_warpgroup_product(const compile::Primitive& primitive, const Properties& properties);
/// Products, convolutions of single pixels and the gradients of their images, in 16 bits, of a larger depth: tensor
/// cores are their limit. Where rows' elements lie side by side.
Verdict judge_warpgroup_product(const compile::Primitive& primitive, const GpuContext& context);
/// Contractions of any type, an element (or a part of its sum) a thread: integers, groups of few channels, a few rows
/// or columns.
Verdict judge_elements(const compile::Primitive& primitive, const GpuContext& context);
/// max_pool, max_unpool, sum_pool, sum_unpool.
Verdict judge_windows(const compile::Primitive& primitive, const GpuContext& context);
/// take, put.
Verdict judge_indexing(const compile::Primitive& primitive, const GpuContext& context);
/// argsort, cumsum.
Verdict judge_sort(const compile::Primitive& primitive, const GpuContext& context);
Verdict judge_scan(const compile::Primitive& primitive, const GpuContext& context);

/// Attention and its gradients on tensor cores, for float16 and bfloat16 and heads of at most 64; in blocks, for heads
/// of at most 128; and an element a thread, for all. Fragments alone compute the three gradients at once, over at most
/// 208 keys.
Verdict judge_attention_fragments(const compile::Primitive& primitive, const GpuContext& context);
Verdict judge_attention_blocks(const compile::Primitive& primitive, const GpuContext& context);
Verdict judge_attention_elements(const compile::Primitive& primitive, const GpuContext& context);

}  // namespace russet::gpu
