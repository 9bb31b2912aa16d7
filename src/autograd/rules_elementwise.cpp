// Gradients of elementwise primitives with corners.
#include "autograd/rules_detail.h"

namespace russet::autograd {

Gradients zero_gradient(const Context& context, const Tensor& gradient) {
  Gradients gradients;
  for (std::size_t i = 0; i < context.input_descriptions.size(); ++i) {
    if (context.needs[i]) gradients[i] = constant(gradient, 0, context.shape_of(i));
  }
  return gradients;
}

// x^y: y x^(y-1), and 0 where y is 0, even at x = 0: there y is taken as 1, so that no 0^-1 arises. x^y log x, and 0
// at x = 0 for y >= 0.
Gradients pow_gradient(const Context& c, const Tensor& g) {
  const Tensor& x = c.in0();
  const Tensor& y = c.in1();
  const Tensor zero = constant(g, 0);
  return both(
      c,
      [&] {
        const Tensor one = constant(g, 1);
        return g * (y * pow(x, where(y == zero, one, y) - one));
      },
      [&] {
        const Tensor defined = where(logical_and(x == zero, y >= zero), constant(g, 1), x);
        return g * (c.out() * log(defined));
      });
}

Gradients atan2_gradient(const Context& c, const Tensor& g) {
  const Tensor scaled = g / (c.in0() * c.in0() + c.in1() * c.in1());
  return both(
      c, [&] { return scaled * c.in1(); }, [&] { return -(scaled * c.in0()); });
}

namespace {

// The gradient of the input that is not `lost`; NaN passes it on to both, as in PyTorch.
Tensor share_of_ties(const Tensor& g, const Tensor& tied, const Tensor& lost) {
  return where(lost, constant(g, 0), where(tied, g * constant(g, 0.5), g));
}

}  // namespace

Gradients maximum_gradient(const Context& c, const Tensor& g) {
  const Tensor tied = c.in0() == c.in1();
  return both(
      c, [&] { return share_of_ties(g, tied, c.in0() < c.in1()); },
      [&] { return share_of_ties(g, tied, c.in1() < c.in0()); });
}

Gradients minimum_gradient(const Context& c, const Tensor& g) {
  const Tensor tied = c.in0() == c.in1();
  return both(
      c, [&] { return share_of_ties(g, tied, c.in1() < c.in0()); },
      [&] { return share_of_ties(g, tied, c.in0() < c.in1()); });
}

Gradients where_gradient(const Context& c, const Tensor& g) {
  const Tensor zero = constant(g, 0);
  Gradients gradients;
  if (c.needs[1]) gradients[1] = where(c.in0(), g, zero);
  if (c.needs[2]) gradients[2] = where(c.in0(), zero, g);
  return gradients;
}

}  // namespace russet::autograd
