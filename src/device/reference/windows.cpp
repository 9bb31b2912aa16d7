// Pooling: sums over windows, the element at the first maximum of each window, and the transposes of both.
#include "device/reference/kernels.h"
#include "device/reference/taps.h"

namespace russet::reference {
namespace {

using ops::Op;

/// Calls visit(y, x), positions in whole arrays, for every element of every window.
template <class Visitor>
void for_each_element(const ops::Window& window, const Shape& x, const Shape& y, Visitor&& visit) {
  const PlaneSizes sizes{x[2], x[3], y[2], y[3], window.kernel[0], window.kernel[1]};
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for_each_tap(window, sizes, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t) {
      visit(plane * y[2] * y[3] + at_y, plane * x[2] * x[3] + at_x);
    });
  }
}

/// For each window the position of the first maximum of x, NaN counting as largest; -1 if it holds padding alone.
template <class T>
Array<std::int64_t> first_maxima(const ops::Window& window, const Array<T>& x, const Shape& y) {
  Array<std::int64_t> chosen(y, -1);
  for_each_element(window, x.shape, y, [&](std::int64_t at_y, std::int64_t at_x) {
    std::int64_t& best = chosen[at_y];
    if (best < 0 || greater(x[at_x], x[best])) best = at_x;
  });
  return chosen;
}

Array<std::int64_t> chosen_positions(const PrimitiveRun& primitive, const Shape& y) {
  const auto& window = primitive.attribute<ops::Window>();
  Array<std::int64_t> chosen(Shape{0});
  by_kind(primitive.input_type(0), [&]<class T>(T) { chosen = first_maxima(window, primitive.input<T>(0), y); });
  return chosen;
}

template <class T>
void max_pool(const PrimitiveRun& primitive) {
  const Array<std::int64_t> chosen = chosen_positions(primitive, primitive.output_shape());
  const Array<T> values = primitive.input<T>(1);
  Array<T> result(primitive.output_shape());
  for (std::size_t i = 0; i < chosen.values.size(); ++i) {
    if (chosen.values[i] >= 0) result.values[i] = values[chosen.values[i]];
  }
  primitive.output(result);
}

template <class T>
void max_unpool(const PrimitiveRun& primitive) {
  const Array<T> gradient = primitive.input<T>(1);
  const Array<std::int64_t> chosen = chosen_positions(primitive, gradient.shape);
  Array<T> result(primitive.output_shape());
  for (std::size_t i = 0; i < chosen.values.size(); ++i) {
    if (chosen.values[i] < 0) continue;
    T& sum = result[chosen.values[i]];
    sum = plus(sum, gradient.values[i]);
  }
  primitive.output(result);
}

template <class T>
void sum_windows(const PrimitiveRun& primitive) {
  const auto& window = primitive.attribute<ops::Window>();
  const Array<T> input = primitive.input<T>(0);
  Array<T> result(primitive.output_shape());
  if (primitive.op() == Op::sum_pool) {
    for_each_element(window, input.shape, result.shape, [&](auto y, auto x) { result[y] = plus(result[y], input[x]); });
  } else {
    for_each_element(window, result.shape, input.shape, [&](auto y, auto x) { result[x] = plus(result[x], input[y]); });
  }
  primitive.output(result);
}

}  // namespace

void run_window(const PrimitiveRun& primitive) {
  by_kind(primitive.output_type(), [&]<class T>(T) {
    switch (primitive.op()) {
      case Op::max_pool: return max_pool<T>(primitive);
      case Op::max_unpool: return max_unpool<T>(primitive);
      default: return sum_windows<T>(primitive);
    }
  });
}

}  // namespace russet::reference
