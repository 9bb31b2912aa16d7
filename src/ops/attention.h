#pragma once
// Which input of attention and of its gradients is what.
#include "ops/attributes.h"
#include "ops/op.h"

namespace russet::ops {

/// Positions among the inputs, -1 for what the operator does not read. The mask and the random numbers are optional and
/// come last.
struct AttentionInputs {
  int query = 0;
  int key = 1;
  int value = -1;
  int gradient = -1;   // of the result
  int logsumexp = -1;  // of the scores of each row
  int delta = -1;      // the sum of the result times its gradient, of each row
  int mask = -1;
  int uniform = -1;  // random numbers in [0, 1): those below `dropout` drop their probability
  int count = 2;
};

constexpr AttentionInputs attention_inputs(Op op, const Attention& attention) {
  AttentionInputs at;
  if (op != Op::attention_logsumexp && op != Op::attention_value_gradient) at.value = at.count++;
  if (op != Op::attention_logsumexp && op != Op::attention) {
    at.gradient = at.count++;
    at.logsumexp = at.count++;
    if (op != Op::attention_value_gradient) at.delta = at.count++;
  }
  if (attention.masked) at.mask = at.count++;
  if (attention.dropout > 0 && op != Op::attention_logsumexp) at.uniform = at.count++;
  return at;
}

}  // namespace russet::ops
