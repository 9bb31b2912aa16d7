#pragma once
// Attention as its primitives: what the composite and the gradient rules share.
#include <russet/tensor.h>

#include "ops/attributes.h"

namespace russet::autograd {

/// Query [batch..., l, e], key [batch..., s, e], value [batch..., s, v] of one type; mask (undefined for none): boolean
/// or added to the scores, of the same rank, with sizes of [batch..., l, s] or 1; uniform (undefined without dropout):
/// random numbers [batch..., l, s].
struct AttentionOperands {
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor mask;
  Tensor uniform;
  ops::Attention attributes;  // `masked` is set here
};

/// [batch..., l, v].
Tensor attention(const AttentionOperands& operands);
/// Of each row's scores, [batch..., l, 1]: float32, or float64.
Tensor attention_logsumexp(const AttentionOperands& operands);

struct AttentionGradients {
  Tensor query;
  Tensor key;
  Tensor value;
};
/// From the result, its gradient, and the logsumexp (FlashAttention-2, Dao, 2023, arXiv:2307.08691).
AttentionGradients attention_gradients(const AttentionOperands& operands, const Tensor& result, const Tensor& logsumexp,
                                       const Tensor& gradient);

}  // namespace russet::autograd
