// Values that are combined where they fall on one element.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include "functional/scan.h"
#include "graph/index_check.h"
#include "ops/failures.h"

namespace russet {

using functional::cast;
using functional::constant;
using Saved = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

/// A call whose tensors have been checked: the source has the index's sizes, and there are axes.
struct Scattering {
  Tensor x;
  Tensor index;
  Tensor source;
  int axis;
  bool include_self;

  /// Where something falls.
  Tensor touched() const { return scatter(constant(false, DType::boolean, x.device(), x.sizes()), axis, index, true); }
  Tensor added_to(const Tensor& base, const Tensor& values) const { return scatter_add(base, axis, index, values); }
};

/// The index, checked once for all that reads it: at once where the host can see it, else by looking each place up.
Tensor checked_places(const char* function, const Tensor& index, int axis, std::int64_t size) {
  const graph::RangeCheck range = graph::check_range(graph::value_of(index), 0, size, {});
  if (range.stray) {
    ops::throw_out_of_range(function, range.stray->value, axis, size, range.stray->place, index.numel());
  }
  const Tensor places = cast(index, DType::int64);
  if (range.is_known) return places;
  return functional::taken(functional::iota({size}, index.device()), {.lead = places.sizes()}, places);
}

Scattering checked(const char* function, const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                   bool include_self) {
  functional::require_index_type(function, index);
  functional::require_same_type(function, x, source);
  const int axis = wrap_axis(dim, x.dim());
  const auto opened = [](const Tensor& tensor) { return tensor.dim() == 0 ? tensor.reshape({1}) : tensor; };
  Scattering call{opened(x), opened(index), opened(source), axis, include_self};
  bool fits = call.index.dim() == call.x.dim() && call.source.dim() == call.x.dim();
  for (int i = 0; fits && i < call.x.dim(); ++i) {
    fits = call.index.sizes()[i] <= call.source.sizes()[i] && (i == axis || call.index.sizes()[i] <= call.x.sizes()[i]);
  }
  if (!fits) {
    throw ShapeError(fmt::format("{}: the index {} does not fit the tensor {} and the source {} along dimension {}",
                                 function, to_string(index.sizes()), to_string(x.sizes()), to_string(source.sizes()),
                                 axis));
  }
  call.index = checked_places(function, call.index, axis, call.x.size(axis));
  for (int i = 0; i < call.x.dim(); ++i) call.source = call.source.narrow(i, 0, call.index.sizes()[i]);
  return call;
}

/// What sums and means add to.
Tensor base_of(const Scattering& call) {
  return call.include_self ? call.x : where(call.touched(), constant(0, call.x), call.x);
}

Tensor mean_at(const Scattering& call) {
  const Tensor none = constant(call.include_self ? 1 : 0, DType::int64, call.x.device(), call.x.sizes());
  const Tensor counts = call.added_to(none, constant(1, none, call.index.sizes()));
  const Tensor divisor = cast(maximum(counts, constant(1, counts)), call.x.dtype());
  const Tensor total = call.added_to(base_of(call), call.source);
  return is_floating(call.x.dtype()) ? total / divisor : floor_divide(total, divisor);
}

/// Products of the values that are bound for one element: they stand side by side once the indices are sorted.
Tensor prod_at(const Scattering& call) {
  const int axis = call.axis;
  const Tensor order = argsort(call.index, axis);
  const Tensor targets = gather(call.index, axis, order);
  const Tensors start{targets, gather(call.source, axis, order)};
  const Tensor running = functional::scanned(start, axis, [](const Tensors& before, const Tensors& after) {
    return Tensors{after[0], where(eq(before[0], after[0]), before[1] * after[1], after[1])};
  })[1];
  const Tensor differs = functional::differs_from_before(targets, axis);
  Shape edge = targets.sizes();
  edge[axis] = 1;
  const Tensor is_last = cat({differs, constant(true, DType::boolean, call.x.device(), edge)}, axis);
  const Tensor zeros = constant(0, call.x, call.x.sizes());
  const Tensor products = scatter_add(zeros, axis, targets, where(is_last, running, constant(0, running)));
  return where(call.touched(), call.include_self ? call.x * products : products, call.x);
}

/// An order turned round: its own inverse.
Tensor reversed(const Tensor& x) { return is_floating(x.dtype()) ? neg(x) : bitwise_not(x); }

/// The largest value for each element: in ascending order, the last that is written stays.
Tensor largest_at(const Scattering& call) {
  const Tensor order = argsort(call.source, call.axis);
  const Tensor written =
      scatter(call.x, call.axis, gather(call.index, call.axis, order), gather(call.source, call.axis, order));
  return call.include_self ? maximum(call.x, written) : written;
}

Tensor extremum_at(const Scattering& call, bool largest) {
  const Tensor result = functional::outside_tape([&] {
    if (largest) return largest_at(call);
    return reversed(largest_at({reversed(call.x), call.index, reversed(call.source), call.axis, call.include_self}));
  });
  if (!is_floating(call.x.dtype())) return result;
  return autograd::with_gradient(
      "scatter_reduce", {call.x, call.source}, result, {call.x, call.source, call.index}, true,
      [axis = call.axis, include_self = call.include_self](const Tensor& g, Saved saved) -> Tensors {
        const Tensor& index = saved[2];
        const Tensor own = cast(eq(saved[0], saved[3]), g.dtype());
        const Tensor theirs = cast(eq(saved[1], gather(saved[3], axis, index)), g.dtype());
        const Tensor ties = scatter_add(own, axis, index, theirs);  // equal elements share the gradient evenly
        const Tensor share = g / maximum(ties, constant(1, ties));
        const Tensor kept = own * share;
        return {include_self ? kept : scatter(kept, axis, index, 0), theirs * gather(share, axis, index)};
      });
}

Tensor reduced_at(const Scattering& call, ScatterReduction reduce) {
  if (call.index.numel() == 0) return functional::copied(call.x);
  switch (reduce) {
    case ScatterReduction::sum: return call.added_to(base_of(call), call.source);
    case ScatterReduction::mean: return mean_at(call);
    case ScatterReduction::prod: return prod_at(call);
    case ScatterReduction::amax: return extremum_at(call, true);
    case ScatterReduction::amin: break;
  }
  return extremum_at(call, false);
}

}  // namespace

Tensor scatter_reduce(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                      ScatterReduction reduce, const ScatterReduceOptions& options) {
  return reduced_at(checked("scatter_reduce", x, dim, index, source, options.include_self), reduce).reshape(x.sizes());
}

Tensor index_reduce(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                    ScatterReduction reduce, const ScatterReduceOptions& options) {
  if (reduce == ScatterReduction::sum)
    throw ValueError("index_reduce: reduces by prod, mean, amax or amin, not by sum");
  functional::require_index_type("index_reduce", index);
  const int axis = wrap_axis(dim, x.dim());
  Shape expected = x.dim() == 0 ? Shape{1} : x.sizes();
  expected[axis] = index.numel();
  const Tensor values = source.dim() == 0 ? source.reshape({1}) : source;
  if (index.dim() > 1 || values.sizes() != expected) {
    throw ShapeError(fmt::format("index_reduce: an index {} and a source {} for {} along dimension {}",
                                 to_string(index.sizes()), to_string(source.sizes()), to_string(x.sizes()), axis));
  }
  Shape spread = Shape::filled(expected.rank(), 1);
  spread[axis] = index.numel();
  const Tensor places = index.reshape(spread).expand(expected);
  const Tensor opened = x.dim() == 0 ? x.reshape({1}) : x;
  return reduced_at(checked("index_reduce", opened, axis, places, values, options.include_self), reduce)
      .reshape(x.sizes());
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  if (mask.dtype() != DType::boolean) {
    throw TypeError(fmt::format("masked_scatter: the mask is bool, not {}", name_of(mask.dtype())));
  }
  functional::require_same_type("masked_scatter", x, source);
  const Tensors both = broadcast_tensors({x, mask});
  const Tensor number = cumsum(both[1].flatten(), 0).reshape(both[1].sizes());  // counted from 1
  // 0 where nothing is taken: an element in front of the source, so that any source will do for an empty mask.
  const Tensor places = where(both[1], number, constant(0, number));
  const Tensor values = cat({constant(0, source, {1}), source.flatten()});
  return where(both[1], functional::taken(values, {.lead = places.sizes()}, places), both[0]);
}

}  // namespace russet
