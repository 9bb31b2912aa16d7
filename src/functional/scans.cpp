// Running extrema and logsumexp.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/reduction.h>

#include "functional/scan.h"

namespace russet {

using functional::cast;
using functional::constant;
using functional::scanned;
using functional::wide;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

/// The running extremum; `at_least(after, before)` says that the later of two elements counts.
template <class AtLeast>
ValuesIndices extremum_so_far(const Tensor& x, std::int64_t dim, AtLeast&& at_least) {
  const int axis = wrap_axis(dim, x.dim());
  if (x.dim() == 0) return {functional::copied(x), constant(0, DType::int64, x.device())};
  const Tensor indices = functional::outside_tape([&] {
    const Tensors start{x.detach(), functional::places_along(x, axis)};
    return scanned(start, axis,
                   [&](const Tensors& before, const Tensors& after) {
                     Tensor later = at_least(after[0], before[0]);
                     if (is_floating(x.dtype())) later = logical_or(later, isnan(after[0]));
                     return Tensors{where(later, after[0], before[0]), where(later, after[1], before[1])};
                   })[1]
        .contiguous();
  });
  return {gather(x, axis, indices), indices};
}

/// d/dx of logcumsumexp for gradients that are not negative: exp(x) times the sum of gradient / exp(result) from each
/// element on, in logarithms.
Tensor logcumsumexp_slope(const Tensor& gradient, const Tensor& x, const Tensor& result, int axis) {
  const Tensor terms = flip(log(gradient) - result, axis);
  return exp(flip(logcumsumexp(terms, axis), axis) + x);
}

}  // namespace

ValuesIndices cummax(const Tensor& x, std::int64_t dim) {
  return extremum_so_far(x, dim, [](const Tensor& after, const Tensor& before) { return ge(after, before); });
}
ValuesIndices cummin(const Tensor& x, std::int64_t dim) {
  return extremum_so_far(x, dim, [](const Tensor& after, const Tensor& before) { return le(after, before); });
}

Tensor logcumsumexp(const Tensor& x, std::int64_t dim) {
  functional::require_floating("logcumsumexp", x);
  const int axis = wrap_axis(dim, x.dim());
  if (x.dim() == 0 || x.numel() == 0) return functional::copied(x);
  const Tensor result = functional::outside_tape([&] {
    const Tensors sums = scanned({wide(x)}, axis, [](const Tensors& before, const Tensors& after) {
      return Tensors{logaddexp(before[0], after[0])};
    });
    return cast(sums[0], x.dtype());
  });
  return autograd::with_gradient(
      "logcumsumexp", {x}, result, {x}, true, [axis](const Tensor& gradient, Saved saved) -> Tensors {
        const Tensor w = wide(saved[0]);
        const Tensor g = wide(gradient);
        const Tensor zero = constant(0, w);
        const Tensor sums = wide(saved[1]);
        const Tensor finite = where(isneginf(sums), zero, sums);  // each x so far is -inf: exp(x) is 0 there
        const Tensor rising = logcumsumexp_slope(where(gt(g, zero), g, zero), w, finite, axis);
        return {rising - logcumsumexp_slope(where(lt(g, zero), neg(g), zero), w, finite, axis)};
      });
}

}  // namespace russet
