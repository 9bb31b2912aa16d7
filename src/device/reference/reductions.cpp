// Reductions: each element of the input goes, in row-major order, to the result of its kept axes.
#include <algorithm>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using ops::Op;

/// Strides that lead from an index of the input to the result, where reduced axes have size 1.
Strides result_strides(const PrimitiveRun& primitive) {
  Strides strides = contiguous_strides(primitive.output_shape());
  const auto& axes = primitive.attribute<ops::Axes>();
  for (int axis = 0; axis < strides.rank(); ++axis) {
    if (axes.contains(axis)) strides[axis] = 0;
  }
  return strides;
}

template <class T, class Combine>
Array<T> fold(const PrimitiveRun& primitive, T start, Combine combine) {
  const Array<T> x = primitive.input<T>(0);
  Array<T> result(primitive.output_shape(), start);
  walk(x.shape, result_strides(primitive),
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
Array<T> squared_deviations(const PrimitiveRun& primitive) {
  const Array<T> x = primitive.input<T>(0);
  const std::int64_t count = numel(x.shape) / std::max<std::int64_t>(numel(primitive.output_shape()), 1);
  Array<T> mean = fold<T>(primitive, 0, [](T a, T b) { return plus(a, b); });
  Array<T> result(primitive.output_shape(), 0);
  walk(x.shape, result_strides(primitive), [&](std::int64_t position, std::int64_t at) {
    const T distance = x[position] - mean[at] / static_cast<T>(count);
    result[at] += distance * distance;
  });
  return result;
}

template <class T>
Array<T> reduce(const PrimitiveRun& primitive) {
  switch (primitive.op()) {
    case Op::sum: return fold<T>(primitive, 0, [](T a, T b) { return plus(a, b); });
    case Op::prod: return fold<T>(primitive, 1, [](T a, T b) { return times(a, b); });
    case Op::amax: return fold<T>(primitive, lowest<T>(), larger<T>);
    case Op::amin: return fold<T>(primitive, highest<T>(), smaller<T>);
    case Op::squared_deviations: return squared_deviations<T>(primitive);
    default: break;
  }
  throw InternalError("not a reduction of values: " + std::string(ops::row(primitive.op()).name));
}

/// Positions among the reduced axes count up in the order in which elements arrive.
template <class T>
Array<std::int64_t> find_extreme(const PrimitiveRun& primitive) {
  const bool largest = primitive.op() == Op::argmax;
  const Array<T> x = primitive.input<T>(0);
  Array<T> best(primitive.output_shape());
  Array<std::int64_t> seen(primitive.output_shape());
  Array<std::int64_t> chosen(primitive.output_shape());
  walk(x.shape, result_strides(primitive), [&](std::int64_t position, std::int64_t at) {
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

void run_reduction(const PrimitiveRun& primitive) {
  by_kind(primitive.input_type(0), [&]<class T>(T) {
    if (primitive.op() == Op::argmax || primitive.op() == Op::argmin) {
      primitive.output(find_extreme<T>(primitive));
    } else {
      primitive.output(reduce<T>(primitive));
    }
  });
}

}  // namespace russet::reference
