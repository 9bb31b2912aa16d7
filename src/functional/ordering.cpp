// Sorting and searching.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include <bit>

#include "functional/build.h"

namespace russet {

namespace {

/// The first `count` positions that sort x along `axis`.
Tensor first_places(const Tensor& x, int axis, bool descending, std::int64_t count) {
  if (count == 0) return argsort(x, axis, descending).narrow(axis, 0, 0);
  graph::NodeInfo given;
  given.attributes = ops::Axes{1U << static_cast<unsigned>(axis), descending, count == x.sizes()[axis] ? 0 : count};
  return autograd::apply(ops::Op::argsort, {x}, std::move(given));
}

}  // namespace

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
  const int wrapped = wrap_axis(axis, x.dim());
  if (x.dim() == 0) return functional::constant(0, DType::int64, x.device());
  graph::NodeInfo given;
  given.attributes = ops::Axes{1U << static_cast<unsigned>(wrapped), descending};
  return autograd::apply(ops::Op::argsort, {x}, std::move(given));
}

ValuesIndices sort(const Tensor& x, std::int64_t axis, bool descending) {
  const Tensor order = argsort(x, axis, descending);
  if (x.dim() == 0) return {functional::copied(x), order};
  return {gather(x, axis, order), order};
}

ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  const int wrapped = wrap_axis(axis, x.dim());
  const std::int64_t size = x.dim() == 0 ? 1 : x.sizes()[wrapped];
  if (k < 0 || k > size) {
    throw ValueError(fmt::format("topk: there are no {} of {} elements along dimension {} of {}", k, size, axis,
                                 to_string(x.sizes())));
  }
  if (x.dim() == 0) return {functional::copied(x), functional::constant(0, DType::int64, x.device())};
  const Tensor indices = first_places(x, wrapped, largest, k);
  return {gather(x, wrapped, indices), indices};
}

ValuesIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis, bool keepdim) {
  const int wrapped = wrap_axis(axis, x.dim());
  const std::int64_t size = x.dim() == 0 ? 1 : x.sizes()[wrapped];
  if (k < 1 || k > size) throw ValueError(fmt::format("kthvalue: there is no element {} of {}", k, size));
  if (x.dim() == 0) return {functional::copied(x), functional::constant(0, DType::int64, x.device())};
  const Tensor indices = first_places(x, wrapped, false, k).narrow(wrapped, k - 1, 1).contiguous();
  const Tensor values = gather(x, wrapped, indices);
  if (keepdim) return {values, indices};
  return {values.squeeze(wrapped), indices.squeeze(wrapped)};
}

namespace {

/// The number of elements that come before: one fused reduction.
Tensor counted_places(const Tensor& sorted, const Tensor& values, bool right) {
  const Tensor table = sorted.dim() == 1 ? sorted : sorted.unsqueeze(-2);
  const Tensor sought = values.unsqueeze(-1);
  Tensor place = sum(right ? le(table, sought) : lt(table, sought), -1);
  if (!is_floating(values.dtype())) return place;
  const Tensor whole = functional::constant(sorted.size(-1), place);
  const Tensor last = right ? whole : sum(eq(sorted, sorted), -1, sorted.dim() > 1);
  return where(isnan(values), last, place);
}

/// Whether an element comes before the place of the sought number; NaN counts as largest.
Tensor comes_before(const Tensor& element, const Tensor& sought, bool right) {
  Tensor smaller = right ? le(element, sought) : lt(element, sought);
  if (!is_floating(sought.dtype())) return smaller;
  const Tensor last = isnan(sought);
  return logical_or(smaller, right ? last : logical_and(last, eq(element, element)));
}

/// By halving: `place` elements are known to come before, and a step of each power of two is taken if the element that
/// it ends at comes before too.
Tensor searched_places(const Tensor& sorted, const Tensor& values, bool right) {
  const std::int64_t size = sorted.size(-1);
  ops::Indexing indexing = sorted.dim() == 1 ? ops::Indexing{.lead = values.sizes()}
                                             : functional::along_axis(sorted.dim() - 1, values.sizes());
  indexing.checked = true;
  Tensor place = functional::constant(0, DType::int64, values.device(), values.sizes());
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size))); step > 0; step /= 2) {
    const Tensor next = place + functional::constant(step, place);
    const Tensor end = functional::constant(size, place);
    const Tensor element = functional::taken(sorted, indexing, minimum(next, end) - functional::constant(1, place));
    place = where(logical_and(le(next, end), comes_before(element, values, right)), next, place);
  }
  return place;
}

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  bool fits = sorted.dim() == 1 || sorted.dim() == values.dim();
  for (int axis = 0; fits && sorted.dim() > 1 && axis + 1 < sorted.dim(); ++axis) {
    fits = sorted.sizes()[axis] == values.sizes()[axis];
  }
  if (!fits || sorted.dim() == 0) {
    throw ShapeError(
        fmt::format("searchsorted: the sorted tensor {} is a vector, or has the sizes of the values {} but "
                    "for the last",
                    to_string(sorted.sizes()), to_string(values.sizes())));
  }
  constexpr std::int64_t few = 128;  // as many as are compared in the time of the steps
  const NoGrad guard;
  return sorted.size(-1) <= few ? counted_places(sorted, values, right)
                                : searched_places(sorted.detach(), values.detach(), right);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  if (boundaries.dim() != 1) {
    throw ShapeError(fmt::format("bucketize: the boundaries are a vector, not {}", to_string(boundaries.sizes())));
  }
  return searchsorted(boundaries, x, right);
}

namespace {

Tensor contained(const functional::Operand& elements, const functional::Operand& among, const IsinOptions& options) {
  const NoGrad guard;
  const functional::Promoted both = functional::promoted(elements, among);
  const Tensor sought = both.x.detach();
  const Tensor known = both.y.detach().flatten();
  const std::int64_t count = known.numel();
  constexpr std::int64_t few = 64;  // as many as are compared in the time of a search
  Tensor found;
  if (count <= few) {
    found = any(eq(sought.unsqueeze(-1), known), -1);
  } else {
    const Tensor sorted = sort(known).values;
    const Tensor place = searchsorted(sorted, sought);
    const Tensor held = minimum(place, functional::constant(count - 1, place));
    found = eq(functional::taken(sorted, {.lead = held.sizes(), .checked = true}, held), sought);
  }
  return options.invert ? logical_not(found) : found;
}

}  // namespace

Tensor isin(const Tensor& elements, const Tensor& among, const IsinOptions& options) {
  return contained(elements, among, options);
}
Tensor isin(const Tensor& elements, Scalar among, const IsinOptions& options) {
  return contained(elements, among, options);
}
Tensor isin(Scalar element, const Tensor& among, const IsinOptions& options) {
  return contained(element, among, options);
}

}  // namespace russet
