// Quantiles, modes and histograms.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include "functional/scan.h"

namespace russet {

using functional::cast;
using functional::constant;
using Tensors = std::vector<Tensor>;

namespace {

void check_quantile(const char* function, const Tensor& x, const Tensor& q) {
  if (x.dtype() != DType::float32 && x.dtype() != DType::float64) {
    throw TypeError(fmt::format("{}: takes float32 and float64, not {}", function, name_of(x.dtype())));
  }
  if (q.dtype() != x.dtype()) {
    throw TypeError(fmt::format("{}: q is {}, the input {}", function, name_of(q.dtype()), name_of(x.dtype())));
  }
  if (q.dim() > 1) {
    throw ShapeError(fmt::format("{}: q is a number or a vector, not {}", function, to_string(q.sizes())));
  }
  if (x.numel() == 0) throw ValueError(fmt::format("{}: there are no elements in {}", function, to_string(x.sizes())));
}

/// q, whose reader gets an IndexError if it is not between 0 and 1: a number that only the device knows is checked by
/// looking it up.
Tensor checked_shares(const Tensor& q) {
  const Tensor inside = logical_and(ge(q, constant(0, q)), le(q, constant(1, q)));
  const Tensor only = functional::iota({1}, q.device());
  const Tensor place = where(inside, constant(0, only), constant(1, only));
  return q + cast(functional::taken(only, {.lead = place.sizes()}, place), q.dtype());
}

/// Places of the quantiles among the sorted elements of each line (the last axis), as fractions.
Tensor quantile_places(const Tensor& lines, const Tensor& q, bool skips_nan) {
  const std::int64_t size = lines.size(-1);
  const Tensor numbers = sum(eq(lines, lines), -1, true);
  const Tensor last = constant(size - 1, q);
  if (skips_nan) {
    const Tensor one = constant(1, numbers);
    return cast(maximum(numbers, one) - one, q.dtype()) * q;
  }
  // NaN is sorted last: a line that holds one answers it.
  return where(lt(numbers, constant(size, numbers)), last, q * last);
}

/// The elements of sorted lines at fractional places.
Tensor elements_at(const Tensor& sorted, const Tensor& places, QuantileInterpolation interpolation) {
  const auto at = [&](const Tensor& whole) { return gather(sorted, -1, cast(whole, DType::int64)); };
  const Tensor below = floor(places);
  switch (interpolation) {
    case QuantileInterpolation::lower: return at(below);
    case QuantileInterpolation::higher: return at(ceil(places));
    case QuantileInterpolation::nearest: return at(round(places));
    case QuantileInterpolation::midpoint:
      return lerp(at(below), at(ceil(places)), constant(0.5, places, places.sizes()));
    case QuantileInterpolation::linear: break;
  }
  return lerp(at(below), at(ceil(places)), places - below);
}

Tensor quantile_of(const char* function, const Tensor& x, const Tensor& q, std::optional<std::int64_t> dim,
                   bool keepdim, const QuantileOptions& options) {
  check_quantile(function, x, q);
  const bool skips_nan = std::string_view(function) == "nanquantile";
  const int axis = dim ? wrap_axis(*dim, x.dim()) : 0;
  const Tensor lines = dim && x.dim() > 0 ? movedim(x, axis, -1) : x.flatten();
  const Tensor places = quantile_places(lines, q.reshape({q.numel()}), skips_nan);
  const Tensor found = movedim(elements_at(sort(lines, -1).values, places, options.interpolation), -1, 0);
  Shape sizes = x.sizes();
  if (dim && x.dim() > 0) {
    sizes[axis] = 1;
    if (!keepdim) sizes.erase(axis);
  } else {
    sizes = keepdim ? Shape::filled(x.dim(), 1) : Shape{};
  }
  if (q.dim() == 1) sizes.insert(0, q.numel());
  return found.reshape(sizes);
}

Tensor share(const char* function, double q, const Tensor& x) {
  if (!(q >= 0 && q <= 1)) throw ValueError(fmt::format("{}: q is {}, which is not between 0 and 1", function, q));
  return functional::number(q, x.dtype(), x.device());
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                const QuantileOptions& options) {
  return quantile_of("quantile", x, checked_shares(q), dim, keepdim, options);
}
Tensor quantile(const Tensor& x, double q, std::optional<std::int64_t> dim, bool keepdim,
                const QuantileOptions& options) {
  return quantile_of("quantile", x, share("quantile", q, x), dim, keepdim, options);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                   const QuantileOptions& options) {
  return quantile_of("nanquantile", x, checked_shares(q), dim, keepdim, options);
}
Tensor nanquantile(const Tensor& x, double q, std::optional<std::int64_t> dim, bool keepdim,
                   const QuantileOptions& options) {
  return quantile_of("nanquantile", x, share("nanquantile", q, x), dim, keepdim, options);
}

ValuesIndices mode(const Tensor& x, std::int64_t dim, bool keepdim) {
  const int axis = wrap_axis(dim, x.dim());
  if (x.dim() == 0) return {functional::copied(x), constant(0, DType::int64, x.device())};
  const std::int64_t size = x.sizes()[axis];
  if (size == 0) throw ShapeError(fmt::format("mode: dimension {} of {} is empty", dim, to_string(x.sizes())));
  const Tensor indices = functional::outside_tape([&] {
    const ValuesIndices sorted = sort(x.detach(), axis);
    const Tensor places = functional::places_along(x, axis);
    // Where the run of equal elements that each belongs to begins.
    const Tensor differs = functional::differs_from_before(sorted.values, axis);
    const Tensor zero = constant(0, places);
    const Tensor starts =
        cat({places.narrow(axis, 0, 1), where(differs, places.narrow(axis, 1, size - 1), zero)}, axis);
    const Tensor begin = functional::scanned({starts}, axis, [](const Tensors& before, const Tensors& after) {
      return Tensors{maximum(before[0], after[0])};
    })[0];
    return gather(sorted.indices, axis, argmax(places - begin, axis, true));
  });
  const Tensor values = gather(x, axis, indices);
  if (keepdim) return {values, indices};
  return {values.squeeze(axis), indices.squeeze(axis)};
}

Tensor histc(const Tensor& x, std::int64_t bins, double min, double max) {
  functional::require_floating("histc", x);
  if (bins < 1) throw ValueError(fmt::format("histc: {} bins", bins));
  if (!(min <= max)) throw ValueError(fmt::format("histc: the range is from {} to {}", min, max));
  const Tensor none = constant(0, DType::int64, x.device(), {bins + 1});
  if (x.numel() == 0) return cast(none.narrow(0, 0, bins), x.dtype());
  const NoGrad guard;
  const Tensor elements = functional::wide(x.detach().flatten());
  Tensor low = functional::number(min, elements.dtype(), x.device());
  Tensor high = functional::number(max, elements.dtype(), x.device());
  if (min == max) {
    low = amin(elements);
    high = amax(elements);
    const Tensor flat = eq(low, high);
    const Tensor one = constant(1, elements);
    low = where(flat, low - one, low);
    high = where(flat, high + one, high);
  }
  const Tensor inside = logical_and(le(low, elements), le(elements, high));
  const Tensor place = floor((elements - low) * constant(bins, elements) / (high - low));
  const Tensor bin = minimum(where(inside, place, constant(0, place)), constant(bins - 1, place));
  // What lies outside falls into one bin more.
  const Tensor index = where(inside, cast(bin, DType::int64), constant(bins, none));
  const Tensor counts = scatter_add(none, 0, index, constant(1, none, index.sizes()));
  return cast(counts.narrow(0, 0, bins), x.dtype());
}

}  // namespace russet
