#pragma once
// Gradient clipping. Nothing waits for a value.
#include <russet/tensor.h>
#include <vector>

namespace russet::optim {

/// Scales all gradients by the same factor so that the norm of them all is at most max_norm. norm_type: 2, another
/// power, or infinity. Parameters without a gradient are passed over. Returns the norm before.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2);

/// Limits every element of the gradients to [-limit, limit].
void clip_grad_value_(const std::vector<Tensor>& parameters, double limit);

}  // namespace russet::optim
