#pragma once
// What the neural network functions share.
#include <fmt/format.h>
#include <russet/functional.h>
#include <russet/functional/options.h>

#include <string_view>

#include "autograd/tape.h"
#include "functional/autocast.h"
#include "functional/build.h"
#include "functional/promotion.h"

namespace russet::functional {

/// An elementwise function that owns its gradient: `value(x)` and `slope(gradient, x)`, both computed in float32 or
/// better and rounded once.
template <class Value, class Slope>
Tensor smooth(const char* name, const Tensor& x, Value&& value, Slope slope) {
  require_floating(name, x);
  const Tensor result = outside_tape([&] { return cast(value(wide(x)), x.dtype()); });
  return autograd::with_gradient(name, {x}, result, {x}, false,
                                 [slope](const Tensor& g, std::span<const Tensor> saved) -> std::vector<Tensor> {
                                   return {slope(wide(g), wide(saved[0]))};
                                 });
}

/// An elementwise function whose gradient is that of its parts, computed in float32 or better and rounded once.
template <class Value>
Tensor chained(const char* name, const Tensor& x, Value&& value) {
  require_floating(name, x);
  return cast(value(wide(x)), x.dtype());
}

/// The loss made of its terms.
inline Tensor reduced(const Tensor& terms, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return terms;
    case Reduction::sum: return sum(terms);
    case Reduction::mean: break;
  }
  return mean(terms);
}

/// x with a batch axis of size 1 in front if it has one axis fewer than `rank`. Throws ShapeError that names the
/// function for any other number of axes.
inline Tensor batched(const char* function, const Tensor& x, int rank) {
  if (x.dim() == rank) return x;
  if (x.dim() == rank - 1) return x.unsqueeze(0);
  throw ShapeError(fmt::format("{}: takes {} dimensions, or {} without a batch, not {}", function, rank, rank - 1,
                               to_string(x.sizes())));
}

/// y without the batch axis, if x had none.
inline Tensor unbatched(const Tensor& y, const Tensor& x, int rank) { return x.dim() == rank ? y : y.squeeze(0); }

}  // namespace russet::functional
