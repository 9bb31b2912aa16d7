// Reductions: each element of the input goes, in row-major order, to the result of its kept axes.
#include <algorithm>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using ops::Op;

/// Strides that lead from an index of the input to the result, where reduced axes have size 1.
Strides result_strides(const PrimitiveRun& call) {
  Strides strides = contiguous_strides(call.output_shape());
  const auto& axes = call.attribute<ops::Axes>();
  for (int axis = 0; axis < strides.rank(); ++axis) {
    if (axes.contains(axis)) strides[axis] = 0;
  }
  return strides;
}

template <class T, class Combine>
Array<T> fold(const PrimitiveRun& call, T start, Combine combine) {
  const Array<T> x = call.input<T>(0);
  Array<T> result(call.output_shape(), start);
  walk(x.shape, result_strides(call),
       [&](std::int64_t position, std::int64_t at) { result[at] = combine(result[at], x[position]); });
  return result;
}

template <class T>
T lowest() {
  if constexpr (std::is_same_v<T, double>) return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<T>::min();
}

template <class T>
T highest() {
  if constexpr (std::is_same_v<T, double>) return std::numeric_limits<double>::infinity();
  return std::numeric_limits<T>::max();
}

/// Two sweeps: the mean, then distances from it.
template <class T>
Array<T> squared_deviations(const PrimitiveRun& call) {
  const Array<T> x = call.input<T>(0);
  const std::int64_t count = numel(x.shape) / std::max<std::int64_t>(numel(call.output_shape()), 1);
  Array<T> mean = fold<T>(call, 0, [](T a, T b) { return plus(a, b); });
  Array<T> result(call.output_shape(), 0);
  walk(x.shape, result_strides(call), [&](std::int64_t position, std::int64_t at) {
    const T distance = x[position] - mean[at] / static_cast<T>(count);
    result[at] += distance * distance;
  });
  return result;
}

template <class T>
Array<T> reduce(const PrimitiveRun& call) {
  switch (call.op()) {
    case Op::sum: return fold<T>(call, 0, [](T a, T b) { return plus(a, b); });
    case Op::prod: return fold<T>(call, 1, [](T a, T b) { return times(a, b); });
    case Op::amax: return fold<T>(call, lowest<T>(), larger<T>);
    case Op::amin: return fold<T>(call, highest<T>(), smaller<T>);
    case Op::squared_deviations: return squared_deviations<T>(call);
    default: break;
  }
  throw InternalError("not a reduction of values: " + std::string(ops::row(call.op()).name));
}

/// Positions among the reduced axes count up in the order in which elements arrive.
template <class T>
Array<std::int64_t> find_extreme(const PrimitiveRun& call) {
  const bool largest = call.op() == Op::argmax;
  const Array<T> x = call.input<T>(0);
  Array<T> best(call.output_shape());
  Array<std::int64_t> seen(call.output_shape());
  Array<std::int64_t> chosen(call.output_shape());
  walk(x.shape, result_strides(call), [&](std::int64_t position, std::int64_t at) {
    const T value = x[position];
    if (seen[at] == 0 || (largest ? greater(value, best[at]) : less(value, best[at]))) {
      best[at] = value;
      chosen[at] = seen[at];
    }
    ++seen[at];
  });
  return chosen;
}

}  // namespace

void run_reduction(const PrimitiveRun& call) {
  by_kind(call.input_type(0), [&]<class T>(T) {
    if (call.op() == Op::argmax || call.op() == Op::argmin) {
      call.output(find_extreme<T>(call));
    } else {
      call.output(reduce<T>(call));
    }
  });
}

}  // namespace russet::reference
