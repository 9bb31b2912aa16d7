#pragma once
// Gradient rules that are too long for a line of the table, and what rules share.
#include <russet/functional.h>

#include "autograd/rules.h"
#include "autograd/tape.h"
#include "graph/recorder.h"
#include "graph/tensor_state.h"

namespace russet::autograd {

/// A number that is part of the plan, with the type and device of `like`. Unlike a user's number, the compiler may
/// look at it.
inline Tensor constant(const Tensor& like, Scalar value, const Shape& shape = {}) {
  return graph::wrap(graph::constant(value, like.dtype(), like.device(), shape));
}

inline Gradients one(const Tensor& gradient) { return {gradient, {}, {}}; }

/// Gradients of the first two inputs, each made only if it is needed.
template <class First, class Second>
Gradients both(const Context& context, First&& first, Second&& second) {
  Gradients gradients;
  if (context.needs[0]) gradients[0] = first();
  if (context.needs[1]) gradients[1] = second();
  return gradients;
}

/// Applies a primitive whose result has `shape`, with the gradient's type.
inline Tensor apply_as(ops::Op op, std::initializer_list<Tensor> inputs, DType dtype, const Shape& shape,
                       ops::Attributes attributes = {}, std::uint64_t argument = 0) {
  graph::NodeInfo given;
  given.dtype = dtype;
  given.shape = shape;
  given.attributes = std::move(attributes);
  given.argument = argument;
  return apply(op, inputs, std::move(given));
}

// rules_elementwise.cpp
Gradients zero_gradient(const Context& context, const Tensor& gradient);
Gradients pow_gradient(const Context& context, const Tensor& gradient);
Gradients atan2_gradient(const Context& context, const Tensor& gradient);
/// For maximum and minimum: equal elements share the gradient in halves, as PyTorch's do.
Gradients maximum_gradient(const Context& context, const Tensor& gradient);
Gradients minimum_gradient(const Context& context, const Tensor& gradient);
Gradients where_gradient(const Context& context, const Tensor& gradient);

// rules_reduction.cpp
Gradients prod_gradient(const Context& context, const Tensor& gradient);
/// d/dx of the sum of (x - mean)^2: 2 (x - mean), since the distances add up to 0.
Gradients deviations_gradient(const Context& context, const Tensor& gradient);
/// For amax and amin: equal elements share the gradient evenly.
Gradients extremum_gradient(const Context& context, const Tensor& gradient);
Gradients cumsum_gradient(const Context& context, const Tensor& gradient);
Gradients cumprod_gradient(const Context& context, const Tensor& gradient);

// rules_contraction.cpp
/// Op::matmul of two tensors. Not matmul(), which an autocast scope would round.
Tensor product(const Tensor& a, const Tensor& b);
Gradients matmul_gradient(const Context& context, const Tensor& gradient);
Gradients convolution_gradient(const Context& context, const Tensor& gradient);
Gradients convolution_input_gradient(const Context& context, const Tensor& gradient);
Gradients convolution_weight_gradient(const Context& context, const Tensor& gradient);

// rules_movement.cpp
/// The transpose of the view as a linear map: every element of `gradient` is added to where `view` read it.
/// A dynamic view takes its offset from `argument`.
Tensor transposed_view(const Tensor& gradient, const ops::View& view, std::uint64_t argument, const Shape& input);
Gradients strided_gradient(const Context& context, const Tensor& gradient);
Gradients overwrite_gradient(const Context& context, const Tensor& gradient);
Gradients take_gradient(const Context& context, const Tensor& gradient);
Gradients put_gradient(const Context& context, const Tensor& gradient);

// rules_window.cpp
Gradients max_pool_gradient(const Context& context, const Tensor& gradient);
Gradients max_unpool_gradient(const Context& context, const Tensor& gradient);
Gradients sum_pool_gradient(const Context& context, const Tensor& gradient);
Gradients sum_unpool_gradient(const Context& context, const Tensor& gradient);

// rules_attention.cpp
Gradients attention_gradient(const Context& context, const Tensor& gradient);
Gradients attention_logsumexp_gradient(const Context& context, const Tensor& gradient);
/// For the three gradients of attention, as those of the products and elementwise operators that they stand for.
Gradients attention_backward_gradient(const Context& context, const Tensor& gradient);

// rules_linalg.cpp
Gradients cholesky_gradient(const Context& context, const Tensor& gradient);
/// A zero on U's diagonal counts as the type's epsilon, so that the determinant of a singular matrix has its gradient.
Gradients lu_gradient(const Context& context, const Tensor& gradient);
Gradients qr_gradient(const Context& context, const Tensor& gradient);
Gradients eigh_gradient(const Context& context, const Tensor& gradient);
Gradients svd_gradient(const Context& context, const Tensor& gradient);
Gradients solve_triangular_gradient(const Context& context, const Tensor& gradient);

}  // namespace russet::autograd
