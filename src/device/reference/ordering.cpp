// What goes along one axis in order.
#include <algorithm>
#include <numeric>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

/// Calls visit(start, count, stride) for every line of `shape` along the axis of the step.
template <class Visitor>
void for_each_line(const PrimitiveRun& primitive, const Shape& shape, Visitor&& visit) {
  if (shape.empty()) return visit(std::int64_t{0}, std::int64_t{1}, std::int64_t{1});
  const int axis = std::countr_zero(primitive.attribute<ops::Axes>().mask);
  const Strides strides = contiguous_strides(shape);
  Shape starts = shape;
  starts[axis] = shape[axis] == 0 ? 0 : 1;
  walk(starts, strides, [&](std::int64_t, std::int64_t at) { visit(at, shape[axis], strides[axis]); });
}

template <class T>
void sort_indices(const PrimitiveRun& primitive) {
  const bool descending = primitive.attribute<ops::Axes>().descending;
  const Array<T> x = primitive.input<T>(0);
  Array<std::int64_t> sorted(x.shape);
  for_each_line(primitive, x.shape, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const T first = x[start + a * stride];
      const T second = x[start + b * stride];
      return descending ? greater(first, second) : greater(second, first);
    });
    for (std::int64_t i = 0; i < count; ++i) sorted[start + i * stride] = order[static_cast<std::size_t>(i)];
  });
  Array<std::int64_t> first(primitive.output_shape());
  walk(first.shape, contiguous_strides(x.shape), [&](std::int64_t i, std::int64_t at) { first[i] = sorted[at]; });
  primitive.output(first);
}

/// Running sums or products along each line.
template <class T, class Combine>
void accumulate(const PrimitiveRun& primitive, Combine&& combine) {
  Array<T> result = primitive.input<T>(0);
  for_each_line(primitive, result.shape, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 1; i < count; ++i) {
      T& element = result[start + i * stride];
      element = combine(result[start + (i - 1) * stride], element);
    }
  });
  primitive.output(result);
}

}  // namespace

void run_ordering(const PrimitiveRun& primitive) {
  by_kind(primitive.input_type(0), [&]<class T>(T) {
    if (primitive.op() == ops::Op::argsort) {
      sort_indices<T>(primitive);
    } else if (primitive.op() == ops::Op::cumsum) {
      accumulate<T>(primitive, [](T a, T b) { return plus(a, b); });
    } else {
      accumulate<T>(primitive, [](T a, T b) { return times(a, b); });
    }
  });
}

}  // namespace russet::reference
