// Gradients of pooling: pools and their transposes come in pairs. Positions of maxima count as constant.
#include "autograd/rules_detail.h"

namespace russet::autograd {
namespace {

using ops::Op;

Tensor pooled(Op op, std::initializer_list<Tensor> inputs, const Tensor& g, const Shape& shape, const Context& c) {
  return apply_as(op, inputs, g.dtype(), shape, c.node.attributes);
}

}  // namespace

Gradients max_pool_gradient(const Context& c, const Tensor& g) {
  if (!c.needs[1]) return {};
  return {Tensor(), pooled(Op::max_unpool, {c.in0(), g}, g, c.shape_of(1), c), Tensor()};
}

Gradients max_unpool_gradient(const Context& c, const Tensor& g) {
  if (!c.needs[1]) return {};
  return {Tensor(), pooled(Op::max_pool, {c.in0(), g}, g, c.shape_of(1), c), Tensor()};
}

Gradients sum_pool_gradient(const Context& c, const Tensor& g) {
  return one(pooled(Op::sum_unpool, {g}, g, c.shape_of(0), c));
}

Gradients sum_unpool_gradient(const Context& c, const Tensor& g) {
  return one(pooled(Op::sum_pool, {g}, g, c.shape_of(0), c));
}

}  // namespace russet::autograd
