// Gradients of reductions and of running sums. Reduced axes have size 1 in results and their gradients.
#include <algorithm>

#include "autograd/rules_detail.h"

namespace russet::autograd {
namespace {

using ops::Op;

// Ones, and x moved `distance` places towards the end of its last axis (towards the beginning if `backward`).
Tensor shifted(const Tensor& x, std::int64_t distance, bool backward) {
  const std::int64_t rest = x.size(1) - distance;
  const ops::View view{contiguous_strides(x.sizes()), backward ? 0 : distance};
  return apply_as(Op::overwrite, {constant(x, 1, x.sizes()), x.narrow(1, backward ? distance : 0, rest)}, x.dtype(),
                  x.sizes(), view);
}

// For each element of a row the product of those before it (after it), by doubling (Hillis and Steele, 1986): no
// division, so zeros are as good as any number, in gradients of gradients too.
Tensor product_of_others(const Tensor& x, bool backward) {
  Tensor product = shifted(x, 1, backward);
  for (std::int64_t distance = 1; distance < x.size(1); distance *= 2) {
    product = product * shifted(product, distance, backward);
  }
  return product;
}

}  // namespace

Gradients prod_gradient(const Context& c, const Tensor& g) {
  const Tensor& x = c.in0();
  const auto& axes = std::get<ops::Axes>(c.node.attributes);
  if (x.numel() == 0) return one(constant(g, 0, x.sizes()));
  Dims kept_first;
  Dims back = Dims::filled(x.dim(), 0);
  for (const bool reduced : {false, true}) {
    for (int axis = 0; axis < x.dim(); ++axis) {
      if (axes.contains(axis) != reduced) continue;
      back[axis] = kept_first.rank();
      kept_first.push_back(axis);
    }
  }
  const Tensor moved = x.permute(kept_first);
  const Tensor rows = moved.reshape({numel(c.node.shape), -1});
  if (rows.size(1) == 1) return one(g);
  const Tensor others = product_of_others(rows, false) * product_of_others(rows, true);
  return one(g * others.reshape(moved.sizes()).permute(back));
}

Gradients extremum_gradient(const Context& c, const Tensor& g) {
  const Tensor found = (c.in0() == c.out()).to(g.dtype());
  const Tensor count = apply_as(Op::sum, {found}, g.dtype(), c.node.shape, c.node.attributes);
  return one(g / count * found);
}

Gradients deviations_gradient(const Context& c, const Tensor& g) {
  const Tensor& x = c.in0();
  const double count = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(g.numel(), 1));
  const Tensor mean = apply_as(Op::sum, {x}, x.dtype(), c.node.shape, c.node.attributes) * constant(g, 1 / count);
  return one(g * ((x - mean) * constant(g, 2)));
}

Gradients cumsum_gradient(const Context& c, const Tensor& g) {
  const auto& axes = std::get<ops::Axes>(c.node.attributes);
  int axis = 0;
  while (axis < g.dim() && !axes.contains(axis)) ++axis;
  if (axis == g.dim()) return one(g);
  return one(flip(apply_as(Op::cumsum, {flip(g, axis)}, g.dtype(), g.sizes(), c.node.attributes), axis));
}

}  // namespace russet::autograd
