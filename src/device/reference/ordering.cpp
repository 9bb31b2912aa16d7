// What goes along one axis in order.
#include <algorithm>
#include <numeric>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

/// Calls visit(start, count, stride) for every line of `shape` along the axis of the step.
template <class Visitor>
void for_each_line(const Call& call, const Shape& shape, Visitor&& visit) {
  if (shape.empty()) return visit(std::int64_t{0}, std::int64_t{1}, std::int64_t{1});
  const int axis = std::countr_zero(call.attribute<ops::Axes>().mask);
  const Strides strides = contiguous_strides(shape);
  Shape starts = shape;
  starts[axis] = shape[axis] == 0 ? 0 : 1;
  walk(starts, strides, [&](std::int64_t, std::int64_t at) { visit(at, shape[axis], strides[axis]); });
}

template <class T>
void sort_indices(const Call& call) {
  const bool descending = call.attribute<ops::Axes>().descending;
  const Array<T> x = call.input<T>(0);
  Array<std::int64_t> result(call.output_shape());
  for_each_line(call, x.shape, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const T first = x[start + a * stride];
      const T second = x[start + b * stride];
      return descending ? greater(first, second) : greater(second, first);
    });
    for (std::int64_t i = 0; i < count; ++i) result[start + i * stride] = order[static_cast<std::size_t>(i)];
  });
  call.output(result);
}

template <class T>
void sum_up(const Call& call) {
  Array<T> result = call.input<T>(0);
  for_each_line(call, result.shape, [&](std::int64_t start, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 1; i < count; ++i) {
      T& sum = result[start + i * stride];
      sum = plus(result[start + (i - 1) * stride], sum);
    }
  });
  call.output(result);
}

}  // namespace

void run_ordering(const Call& call) {
  by_kind(call.input_type(0), [&]<class T>(T) {
    if (call.op() == ops::Op::argsort) {
      sort_indices<T>(call);
    } else {
      sum_up<T>(call);
    }
  });
}

}  // namespace russet::reference
