#pragma once
// The implementations that need no library: correct for any strides, types and sizes. Each accepts everything of its
// operators.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// matmul, convolution, convolution_input, convolution_weight, with the epilogues of gemm.h.
Verdict judge_product(const compile::Primitive& primitive);
/// max_pool, max_unpool, sum_pool, sum_unpool.
Verdict judge_pool(const compile::Primitive& primitive);
/// take, put. Indices are checked: an IndexError names the first that is out of range.
Verdict judge_indexing(const compile::Primitive& primitive);
/// argsort, cumsum.
Verdict judge_ordering(const compile::Primitive& primitive);
/// Operators that are groups of one instruction.
Verdict judge_groups(const compile::Primitive& primitive);
/// strided and overwrite of operands in any layout; empty.
Verdict judge_movement(const compile::Primitive& primitive);

}  // namespace russet::cpu
