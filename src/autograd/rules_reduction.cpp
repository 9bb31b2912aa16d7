// Gradients of reductions, of running sums and products. Reduced axes have size 1 in results and their gradients.
#include <algorithm>
#include <bit>

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

int axis_of(const Context& c) { return std::countr_zero(std::get<ops::Axes>(c.node.attributes).mask); }

// r_i = g_i + f_i r_(i + 1) from the end of axis 1 on; f has one element fewer than g. Pairs of elements make a
// recurrence of half the size, whose results are every other one of these: work grows with the size alone.
Tensor recurrence(const Tensor& f, const Tensor& g) {
  const std::int64_t size = g.size(1);
  if (size == 1) return g;
  if (size % 2 == 1) {
    const Tensor rest = recurrence(f.narrow(1, 1, size - 2), g.narrow(1, 1, size - 1));
    const Tensor first = g.narrow(1, 0, 1) + f.narrow(1, 0, 1) * rest.narrow(1, 0, 1);
    return cat({first, rest}, 1);
  }
  const std::int64_t half = size / 2;
  const auto every_other = [](const Tensor& x, std::int64_t start) { return x.slice(1, {start, {}, 2}); };
  const Tensor even_f = every_other(f, 0);
  const Tensor odd_g = every_other(g, 1);
  const Tensor pairs = every_other(g, 0) + even_f * odd_g;
  if (half == 1) return cat({pairs, odd_g}, 1);
  const Tensor odd_f = every_other(f, 1);
  const Tensor even = recurrence(even_f.narrow(1, 0, half - 1) * odd_f, pairs);
  const Tensor inner = odd_g.narrow(1, 0, half - 1) + odd_f * even.narrow(1, 1, half - 1);
  const Tensor odd = cat({inner, odd_g.narrow(1, half - 1, 1)}, 1);
  return stack({even, odd}, 2).reshape(g.sizes());
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
  if (g.dim() == 0) return one(g);
  const int axis = axis_of(c);
  return one(flip(apply_as(Op::cumsum, {flip(g, axis)}, g.dtype(), g.sizes(), c.node.attributes), axis));
}

// The product of all elements before an element, times what the elements behind it contribute. There is no division, so
// zeros need no special case, in second gradients either.
Gradients cumprod_gradient(const Context& c, const Tensor& g) {
  const Shape& sizes = c.in0().sizes();
  if (c.in0().numel() <= 1) return one(g);
  const int axis = axis_of(c);
  const std::int64_t others = sizes[axis] - 1;
  if (others == 0) return one(g);
  Shape lines{1, sizes[axis], 1};
  for (int i = 0; i < sizes.rank(); ++i) {
    if (i != axis) lines[i < axis ? 0 : 2] *= sizes[i];
  }
  const Tensor x = c.in0().reshape(lines);
  const Tensor before = cat({constant(x, 1, {lines[0], 1, lines[2]}), c.out().reshape(lines).narrow(1, 0, others)}, 1);
  return one((before * recurrence(x.narrow(1, 1, others), g.reshape(lines))).reshape(sizes));
}

}  // namespace russet::autograd
