// Reductions that own their gradient: var, norm, logsumexp, softmax. Types of 16 bits are computed in float32 and
// rounded once.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/reduction.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "functional/autocast.h"
#include "functional/build.h"

namespace russet {

using autograd::with_gradient;
using functional::cast;
using functional::constant;
using functional::mask_of;
using functional::outside_tape;
using functional::reduced;
using functional::wide;
using functional::with_axes;
using ops::Op;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Floating; in float32 within an autocast scope.
Tensor in_float32(const Tensor& x) { return functional::autocast(ops::Autocast::float32, functional::floating(x)); }

/// What a reduction's gradient rule needs to know of the call.
struct ReducedDims {
  std::uint32_t mask;
  int rank;
  bool keepdim;

  /// A tensor of the result's shape with the reduced axes at size 1.
  Tensor opened(const Tensor& result) const { return with_axes(result, mask, rank, keepdim); }
  Tensor closed(const Tensor& kept) const { return keepdim ? kept : functional::without_axes(kept, mask); }
};

Tensor sum_kept(const Tensor& x, std::uint32_t mask) { return reduced(Op::sum, x, mask, true); }

Tensor mean_kept(const Tensor& x, std::uint32_t mask) {
  return sum_kept(x, mask) / constant(functional::count_of(x, mask), x);
}

/// What var divides by.
double divisor(const Tensor& x, std::uint32_t mask, double correction) {
  return std::max(static_cast<double>(functional::count_of(x, mask)) - correction, 0.0);
}

}  // namespace

Tensor var(const Tensor& x, const DimList& dim, const VarOptions& options) {
  functional::require_floating("var", x);
  const ReducedDims call{mask_of(x, dim), x.dim(), options.keepdim};
  const double count = divisor(x, call.mask, options.correction);
  const Tensor result = outside_tape([&] {
    const Tensor w = wide(x);
    const Tensor deviations = reduced(Op::squared_deviations, w, call.mask, true);
    return cast(call.closed(deviations / constant(count, w)), x.dtype());
  });
  return with_gradient("var", {x}, result, {x}, false, [call, count](const Tensor& g, Saved saved) {
    const Tensor w = wide(saved[0]);
    const Tensor centred = w - mean_kept(w, call.mask);
    return Tensors{wide(call.opened(g)) * (centred * constant(2 / count, w))};
  });
}

Tensor std(const Tensor& x, const DimList& dim, const VarOptions& options) {
  functional::require_floating("std", x);
  const ReducedDims call{mask_of(x, dim), x.dim(), options.keepdim};
  const double count = divisor(x, call.mask, options.correction);
  const Tensor result = outside_tape([&] { return cast(sqrt(var(wide(x), dim, options)), x.dtype()); });
  return with_gradient("std", {x}, result, {x}, true, [call, count](const Tensor& g, Saved saved) {
    const Tensor w = wide(saved[0]);
    const Tensor deviation = wide(call.opened(saved[1]));
    const Tensor zero = constant(0, w);
    // Where all elements are equal the root has no slope; the gradient is 0 there, as in PyTorch.
    const Tensor flat = eq(deviation, zero);
    const Tensor scale = wide(call.opened(g)) / where(flat, constant(1, w), deviation) * constant(1 / count, w);
    return Tensors{where(flat, zero, scale) * (w - mean_kept(w, call.mask))};
  });
}

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const DimList& dim, const VarOptions& options) {
  return {var(x, dim, options), mean(x, dim, options.keepdim)};
}
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const DimList& dim, const VarOptions& options) {
  return {std(x, dim, options), mean(x, dim, options.keepdim)};
}

namespace {

/// The norms that have a slope almost everywhere: (sum |x|^p)^(1/p). The gradient is 0 where the norm is (PyTorch's
/// subgradient).
Tensor smooth_norm(const Tensor& x, double p, const ReducedDims& call) {
  const Tensor result = outside_tape([&] {
    const Tensor w = wide(x);
    if (p == 2) return cast(call.closed(sqrt(sum_kept(w * w, call.mask))), x.dtype());
    const Tensor total = sum_kept(pow(abs(w), constant(p, w)), call.mask);
    return cast(call.closed(pow(total, constant(1 / p, w))), x.dtype());
  });
  return with_gradient("norm", {x}, result, {x}, true, [p, call](const Tensor& g, Saved saved) {
    const Tensor w = wide(saved[0]);
    const Tensor length = wide(call.opened(saved[1]));
    const Tensor zero = constant(0, w);
    const Tensor none = eq(length, zero);
    const Tensor safe = where(none, constant(1, w), length);
    const Tensor scale = where(none, zero, wide(call.opened(g)) / safe);
    if (p == 2) return Tensors{w * scale};
    const Tensor ratio = where(eq(w, zero), constant(p < 2 ? 1 : 0, w), abs(w) / safe);
    // d|x|/dx scaled by (|x| / norm)^(p - 1)
    return Tensors{sign(w) * pow(ratio, constant(p - 1, w)) * (scale * safe)};
  });
}

}  // namespace

Tensor norm(const Tensor& input, double p, const DimList& axes, bool keepdim) {
  functional::require_floating("norm", input);
  const Tensor x = functional::autocast(ops::Autocast::float32, input);
  const ReducedDims call{mask_of(x, axes), x.dim(), keepdim};
  if (p == infinity) return call.closed(reduced(Op::amax, abs(x), call.mask, true));
  if (p == -infinity) return call.closed(reduced(Op::amin, abs(x), call.mask, true));
  if (p == 0) {  // a count, which has no slope
    const Tensor count = outside_tape([&] { return sum(cast(functional::truth(x), x.dtype()), axes, keepdim); });
    return with_gradient("norm", {x}, count, {}, false, [](const Tensor&, Saved) { return Tensors{Tensor()}; });
  }
  if (p == 1) return sum(abs(x), axes, keepdim);
  return smooth_norm(x, p, call);
}

namespace {

/// The largest element, or 0 where it is infinite or there is none: what may be subtracted before exp.
Tensor offset_of(const Tensor& x, std::uint32_t mask) {
  const Tensor largest = reduced(Op::amax, x, mask, true);
  return where(isinf(largest), constant(0, x), largest);
}

}  // namespace

Tensor logsumexp(const Tensor& x, const DimList& axes, bool keepdim) {
  const Tensor f = in_float32(x);
  const ReducedDims call{mask_of(f, axes), f.dim(), keepdim};
  const Tensor result = outside_tape([&] {
    const Tensor w = wide(f);
    if (functional::count_of(f, call.mask) == 0) return cast(call.closed(log(sum_kept(w, call.mask))), f.dtype());
    const Tensor offset = offset_of(w, call.mask);
    return cast(call.closed(log(sum_kept(exp(w - offset), call.mask)) + offset), f.dtype());
  });
  return with_gradient("logsumexp", {f}, result, {f}, true, [call](const Tensor& g, Saved saved) {
    const Tensor w = wide(saved[0]);
    const Tensor total = wide(call.opened(saved[1]));
    // exp(-inf - -inf): where every element is -inf, each has no share.
    const Tensor share = exp(w - where(isneginf(total), constant(0, w), total));
    return Tensors{wide(call.opened(g)) * share};
  });
}

Tensor softmax(const Tensor& x, std::int64_t axis, std::optional<DType> dtype) {
  const Tensor f = in_float32(dtype ? cast(x, *dtype) : x);
  const std::uint32_t mask = mask_of(f, axis);
  if (f.numel() == 0) return functional::copied(f);
  const Tensor result = outside_tape([&] {
    const Tensor w = wide(f);
    const Tensor e = exp(w - reduced(Op::amax, w, mask, true));
    return cast(e / sum_kept(e, mask), f.dtype());
  });
  return with_gradient("softmax", {f}, result, {}, true, [mask](const Tensor& g, Saved saved) {
    const Tensor y = wide(saved[0]);
    const Tensor weighted = y * wide(g);
    return Tensors{weighted - y * sum_kept(weighted, mask)};
  });
}

Tensor log_softmax(const Tensor& x, std::int64_t axis, std::optional<DType> dtype) {
  const Tensor f = in_float32(dtype ? cast(x, *dtype) : x);
  const std::uint32_t mask = mask_of(f, axis);
  if (f.numel() == 0) return functional::copied(f);
  const Tensor result = outside_tape([&] {
    const Tensor w = wide(f);
    const Tensor shifted = w - reduced(Op::amax, w, mask, true);
    return cast(shifted - log(sum_kept(exp(shifted), mask)), f.dtype());
  });
  return with_gradient("log_softmax", {f}, result, {}, true, [mask](const Tensor& g, Saved saved) {
    const Tensor w = wide(g);
    return Tensors{w - exp(wide(saved[0])) * sum_kept(w, mask)};
  });
}

}  // namespace russet
