// Gradients of contractions. Each is again one of them.
#include "autograd/rules_detail.h"

namespace russet::autograd {
namespace {

using ops::Op;

// All axes but the last as one.
Tensor as_rows(const Tensor& x) { return x.dim() == 2 ? x : x.reshape({x.numel() / x.size(-1), x.size(-1)}); }

bool has_batch(const Shape& shape) {
  for (int axis = 0; axis + 2 < shape.rank(); ++axis) {
    if (shape[axis] != 1) return true;
  }
  return false;
}

}  // namespace

Tensor product(const Tensor& a, const Tensor& b) { return apply(Op::matmul, {a, b}); }

Gradients matmul_gradient(const Context& c, const Tensor& g) {
  return both(
      c, [&] { return product(g, c.in1().transpose(-1, -2)); },
      [&] {
        // A matrix shared by a batch: one product over all rows instead of a batch of products and their sum.
        const Shape& weight = c.shape_of(1);
        if (!has_batch(weight) && has_batch(c.shape_of(0)) && c.in0().size(-1) > 0 && g.size(-1) > 0) {
          return product(as_rows(c.in0()).t(), as_rows(g)).reshape(weight);
        }
        return product(c.in0().transpose(-1, -2), g);
      });
}

Gradients convolution_gradient(const Context& c, const Tensor& g) {
  const auto& window = c.node.attributes;
  return both(
      c,
      [&] {
        return apply_as(Op::convolution_input, {g, c.in1()}, g.dtype(), c.shape_of(0), window);
      },
      [&] {
        return apply_as(Op::convolution_weight, {c.in0(), g}, g.dtype(), c.shape_of(1), window);
      });
}

// in0: the output's gradient; in1: the weight.
Gradients convolution_input_gradient(const Context& c, const Tensor& g) {
  const auto& window = c.node.attributes;
  return both(
      c,
      [&] {
        return apply_as(Op::convolution, {g, c.in1()}, g.dtype(), c.shape_of(0), window);
      },
      [&] {
        return apply_as(Op::convolution_weight, {g, c.in0()}, g.dtype(), c.shape_of(1), window);
      });
}

// in0: x; in1: the output's gradient.
Gradients convolution_weight_gradient(const Context& c, const Tensor& g) {
  const auto& window = c.node.attributes;
  return both(
      c,
      [&] {
        return apply_as(Op::convolution_input, {c.in1(), g}, g.dtype(), c.shape_of(0), window);
      },
      [&] {
        return apply_as(Op::convolution, {c.in0(), g}, g.dtype(), c.shape_of(1), window);
      });
}

}  // namespace russet::autograd
