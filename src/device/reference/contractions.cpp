// Matrix products and convolutions.
#include "device/reference/kernels.h"
#include "device/reference/taps.h"
#include "graph/strided.h"

namespace russet::reference {
namespace {

using ops::Op;

/// The position of each matrix in an array of `shape`, in row-major order of the result's batch axes.
std::vector<std::int64_t> matrix_starts(const Shape& shape, const Shape& batch) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(numel(batch)));
  Shape own = shape;
  Strides strides = contiguous_strides(shape);
  for (int matrix_axis = 0; matrix_axis < 2; ++matrix_axis) {
    own.pop_back();
    strides.pop_back();
  }
  walk(batch, graph::broadcast_strides(own, strides, batch),
       [&](std::int64_t position, std::int64_t at) { starts[static_cast<std::size_t>(position)] = at; });
  return starts;
}

template <class T>
void multiply(const PrimitiveRun& primitive) {
  const Array<T> a = primitive.input<T>(0);
  const Array<T> b = primitive.input<T>(1);
  Array<T> result(primitive.output_shape());
  Shape batch = result.shape;
  const std::int64_t columns = batch.back();
  batch.pop_back();
  const std::int64_t rows = batch.back();
  batch.pop_back();
  const std::int64_t inner = a.shape.back();
  const std::vector<std::int64_t> a_starts = matrix_starts(a.shape, batch);
  const std::vector<std::int64_t> b_starts = matrix_starts(b.shape, batch);
  for (std::size_t matrix = 0; matrix < a_starts.size(); ++matrix) {
    const std::int64_t start = static_cast<std::int64_t>(matrix) * rows * columns;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const T factor = a[a_starts[matrix] + i * inner + k];
        for (std::int64_t j = 0; j < columns; ++j) {
          T& sum = result[start + i * columns + j];
          sum = plus(sum, times(factor, b[b_starts[matrix] + k * columns + j]));
        }
      }
    }
  }
  primitive.output(result);
}

/// Calls visit(y, x, weight) for every product that the convolution of x [n, c, h, w] with weight [o, c / groups, kh,
/// kw] to y sums up. Its two gradients sum over the same triples.
template <class Visitor>
void for_each_product(const ops::Window& window, const Shape& x, const Shape& weight, const Shape& y, Visitor&& visit) {
  const PlaneSizes sizes{x[2], x[3], y[2], y[3], weight[2], weight[3]};
  const std::int64_t outputs_per_group = y[1] / window.groups;
  for (std::int64_t image = 0; image < x[0]; ++image) {
    for (std::int64_t output = 0; output < y[1]; ++output) {
      const std::int64_t first_channel = output / outputs_per_group * weight[1];
      for (std::int64_t channel = 0; channel < weight[1]; ++channel) {
        const std::int64_t x_start = (image * x[1] + first_channel + channel) * x[2] * x[3];
        const std::int64_t y_start = (image * y[1] + output) * y[2] * y[3];
        const std::int64_t weight_start = (output * weight[1] + channel) * weight[2] * weight[3];
        for_each_tap(window, sizes, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t at_k) {
          visit(y_start + at_y, x_start + at_x, weight_start + at_k);
        });
      }
    }
  }
}

template <class T>
void convolve(const PrimitiveRun& primitive) {
  const auto& window = primitive.attribute<ops::Window>();
  const Array<T> first = primitive.input<T>(0);
  const Array<T> second = primitive.input<T>(1);
  Array<T> result(primitive.output_shape());
  const auto accumulate = [](T& sum, T a, T b) { sum = plus(sum, times(a, b)); };
  switch (primitive.op()) {
    case Op::convolution:
      for_each_product(window, first.shape, second.shape, result.shape,
                       [&](auto y, auto x, auto w) { accumulate(result[y], first[x], second[w]); });
      break;
    case Op::convolution_input:
      for_each_product(window, result.shape, second.shape, first.shape,
                       [&](auto y, auto x, auto w) { accumulate(result[x], first[y], second[w]); });
      break;
    default:
      for_each_product(window, first.shape, result.shape, second.shape,
                       [&](auto y, auto x, auto w) { accumulate(result[w], first[x], second[y]); });
  }
  primitive.output(result);
}

}  // namespace

void run_contraction(const PrimitiveRun& primitive) {
  by_kind(primitive.output_type(), [&]<class T>(T) {
    if (primitive.op() == Op::matmul) {
      multiply<T>(primitive);
    } else {
      convolve<T>(primitive);
    }
  });
}

}  // namespace russet::reference
