#include "graph/strided.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace russet::graph {
namespace {

/// An axis of an array that lies in two memories, and which of its indices a view meets.
struct Axis {
  std::int64_t size, from, to;
  std::int64_t low = 0, high = 0;
};

/// The axes of an array, the one with the longest strides first; merged, so that a view may run over several.
std::vector<Axis> axes_of(const Shape& base, const Strides& from, const Strides& to) {
  const Strides* const maps[] = {&from, &to};
  const auto merged = merged_axes(
      base, 2, [&](std::size_t map, int axis) { return (*maps[map])[axis]; }, [](int) { return false; });
  std::vector<Axis> axes;
  axes.reserve(merged.size());
  for (const MergedAxis& axis : merged) axes.push_back({axis.size, from[axis.last], to[axis.last]});
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.from > b.from; });
  return axes;
}

/// A number from `low` to `high`, both included, times a stride above 0.
struct Term {
  std::int64_t stride, low, high;
};

/// Adds the axes of a view, whose indices count as `sign` times what they are. Says whether all strides are above 0.
bool add_terms(const ops::View& view, const Shape& sizes, std::int64_t sign, std::vector<Term>& terms) {
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] == 1) continue;
    if (view.strides[axis] <= 0) return false;
    const std::int64_t last = sign * (sizes[axis] - 1);
    const auto known = std::ranges::find(terms, view.strides[axis], &Term::stride);
    Term& term = known == terms.end() ? terms.emplace_back(view.strides[axis], 0, 0) : *known;
    term.low += std::min<std::int64_t>(last, 0);
    term.high += std::max<std::int64_t>(last, 0);
  }
  return true;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Whether the terms may add up to `sum`. `effort`: what may still be tried; true when it is spent.
bool may_reach(std::span<const Term> terms, std::int64_t sum, int& effort) {
  if (terms.empty()) return sum == 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const Term& term : terms.subspan(1)) {
    low += term.stride * term.low;
    high += term.stride * term.high;
  }
  const auto [stride, least, most] = terms.front();
  const std::int64_t last = std::min(most, floor_divide(sum - low, stride));
  for (std::int64_t i = std::max(least, -floor_divide(high - sum, stride)); i <= last; ++i) {
    if (--effort < 0 || may_reach(terms.subspan(1), sum - i * stride, effort)) return true;
  }
  return false;
}

}  // namespace

bool are_disjoint(const ops::View& a, const Shape& a_sizes, const ops::View& b, const Shape& b_sizes) {
  if (a.dynamic || b.dynamic) return false;
  if (numel(a_sizes) == 0 || numel(b_sizes) == 0) return true;
  std::vector<Term> terms;
  if (!add_terms(a, a_sizes, 1, terms) || !add_terms(b, b_sizes, -1, terms)) return false;
  std::ranges::sort(terms, std::ranges::greater{}, &Term::stride);
  int effort = 256;
  return !may_reach(terms, b.offset - a.offset, effort);
}

bool same_places(const Shape& sizes, const Strides& a, const Strides& b) {
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] > 1 && a[axis] != b[axis]) return false;
  }
  return true;
}

bool is_row_major(const Shape& sizes, const Strides& strides) {
  std::int64_t expected = 1;
  for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
    if (sizes[axis] > 1 && strides[axis] != expected) return false;
    expected *= std::max<std::int64_t>(sizes[axis], 1);
  }
  return true;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides result = Strides::filled(to.rank(), 0);
  const int added = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) result[axis + added] = strides[axis];
  }
  return result;
}

// Offset and strides are split over the array's axes, those with the longest strides first; a step must not wrap around
// any of them.
std::optional<Geometry> moved(const Geometry& view, const Shape& base, const Strides& from, const Strides& to) {
  if (view.offset < 0 || numel(base) == 0 || numel(view.sizes) == 0) return std::nullopt;
  std::vector<Axis> axes = axes_of(base, from, to);
  Geometry result{view.sizes, Strides::filled(view.sizes.rank(), 0), 0};
  std::int64_t rest = view.offset;
  for (Axis& axis : axes) {
    axis.low = axis.high = rest / axis.from;
    rest %= axis.from;
    result.offset += axis.low * axis.to;
  }
  if (rest != 0) return std::nullopt;
  for (int i = 0; i < view.sizes.rank(); ++i) {
    if (view.sizes[i] == 1) continue;
    rest = view.strides[i];
    for (Axis& axis : axes) {
      const std::int64_t step = rest / axis.from;
      rest %= axis.from;
      (step > 0 ? axis.high : axis.low) += step * (view.sizes[i] - 1);
      result.strides[i] += step * axis.to;
    }
    if (rest != 0) return std::nullopt;
  }
  const bool inside =
      std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.low >= 0 && axis.high < axis.size; });
  return inside ? std::optional(result) : std::nullopt;
}

std::optional<Geometry> resolve_view(const ops::View& view, const Shape& sizes, const Shape& base,
                                     const Strides& base_strides) {
  const Strides order = contiguous_strides(base);
  if (base_strides == order) return Geometry{sizes, view.strides, view.offset};
  if (view.dynamic) return std::nullopt;
  return moved({sizes, view.strides, view.offset}, base, order, base_strides);
}

std::optional<ops::View> compose_views(const ops::View& outer, const Shape& outer_sizes, const ops::View& inner,
                                       const Shape& inner_sizes) {
  if (outer.dynamic) return std::nullopt;
  const std::optional<Geometry> whole = resolve_view(outer, outer_sizes, inner_sizes, inner.strides);
  if (!whole) return std::nullopt;
  return ops::View{whole->strides, whole->offset + inner.offset, inner.dynamic};
}

bool is_identity(const ops::View& view, const Shape& sizes, const Shape& base) {
  return !view.dynamic && view.offset == 0 && sizes == base && is_row_major(sizes, view.strides);
}

bool is_transpose(const ops::View& view, const Shape& sizes, const Shape& base) {
  if (base.rank() < 2) return false;
  Shape swapped = base;
  Strides strides = contiguous_strides(base);
  std::swap(swapped[base.rank() - 1], swapped[base.rank() - 2]);
  std::swap(strides[base.rank() - 1], strides[base.rank() - 2]);
  return !view.dynamic && view.offset == 0 && sizes == swapped && same_places(sizes, view.strides, strides);
}

bool is_reordering(const ops::View& view, const Shape& sizes, const Shape& base) {
  if (view.dynamic || view.offset != 0 || sizes.rank() != base.rank()) return false;
  const Strides order = contiguous_strides(base);
  std::uint32_t seen = 0;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    int from = 0;
    while (from < base.rank() && (((seen >> from) & 1U) || sizes[axis] != base[from] ||
                                  (sizes[axis] > 1 && view.strides[axis] != order[from]))) {
      ++from;
    }
    if (from == base.rank()) return false;
    seen |= 1U << from;
  }
  return true;
}

}  // namespace russet::graph
