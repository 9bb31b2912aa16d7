#include "device/cpu/product.h"

#include "device/cpu/convolution/convolution.h"
#include "device/cpu/operand.h"

namespace russet::cpu {
namespace {

using compile::Operand;
using ops::Op;

Side line(std::int64_t size, std::int64_t step) { return {.size = {1, 1, size}, .step = {0, 0, step}}; }

Side grid(std::array<std::int64_t, 3> size, std::array<std::int64_t, 3> step) { return {.size = size, .step = step}; }

/// Strides of the batch axes of an operand, aligned to those of the result; 0 where it repeats.
Strides batch_strides(const Operand& operand, const Shape& batch) {
  Strides strides = Strides::filled(batch.rank(), 0);
  const int own = operand.sizes.rank() - 2;
  for (int axis = 0; axis < own; ++axis) {
    const int aligned = batch.rank() - own + axis;
    if (operand.sizes[axis] != 1) strides[aligned] = operand.access.strides[axis];
  }
  return strides;
}

Matrix matrix_of(const Operand& operand, const Shape& batch) {
  const int last = operand.sizes.rank() - 1;
  Matrix matrix;
  matrix.rows = line(operand.sizes[last - 1], operand.access.strides[last - 1]);
  matrix.columns = line(operand.sizes[last], operand.access.strides[last]);
  matrix.batch_strides = batch_strides(operand, batch);
  return matrix;
}

Product matrix_product(const compile::Primitive& primitive) {
  Product product;
  product.batch = primitive.output.sizes;
  product.batch.pop_back();
  product.batch.pop_back();
  product.a = matrix_of(primitive.inputs[0], product.batch);
  product.b = matrix_of(primitive.inputs[1], product.batch);
  product.c = matrix_of(primitive.output, product.batch);
  return product;
}

/// Strides of an operand over [image, group, channel in group, height, width], or for weights over
/// [group, output in group, channel, height, width].
struct Split {
  std::int64_t outer, group, channel, height, width;
};

Split split(const Operand& operand, std::int64_t groups) {
  const Strides& s = operand.access.strides;
  return {s[0], operand.sizes[1] / groups * s[1], s[1], s[2], s[3]};
}

/// The arrays of a convolution as matrices.
struct ConvolutionMatrices : Convolution {
  explicit ConvolutionMatrices(const compile::Primitive& primitive) : Convolution(primitive) {}

  Split in = split(x, groups);
  Split out = split(y, groups);
  Strides w = weight.access.strides;

  /// x as a matrix: the pixels of y by the taps of a window (channel, height, width).
  Matrix windows() const {
    Matrix matrix;
    matrix.in_plane = true;
    matrix.rows = {.size = {x.sizes[0], y.sizes[2], y.sizes[3]},
                   .step = {in.outer, 0, 0},
                   .height = {0, window.stride[0], 0},
                   .width = {0, 0, window.stride[1]}};
    matrix.columns = {.size = {channels, weight.sizes[2], weight.sizes[3]},
                      .step = {in.channel, 0, 0},
                      .height = {0, window.dilation[0], 0},
                      .width = {0, 0, window.dilation[1]}};
    matrix.origin_height = -window.padding[0];
    matrix.origin_width = -window.padding[1];
    matrix.plane_height = x.sizes[2];
    matrix.plane_width = x.sizes[3];
    matrix.step_height = in.height;
    matrix.step_width = in.width;
    matrix.batch_strides = {in.group};
    return matrix;
  }

  /// y as a matrix: the pixels of x by (output channel, height, width) of the weights that touched them.
  Matrix touched() const {
    Matrix matrix;
    matrix.in_plane = true;
    matrix.rows = {.size = {x.sizes[0], x.sizes[2], x.sizes[3]},
                   .step = {out.outer, 0, 0},
                   .height = {0, 1, 0},
                   .width = {0, 0, 1}};
    matrix.columns = {.size = {outputs, weight.sizes[2], weight.sizes[3]},
                      .step = {out.channel, 0, 0},
                      .height = {0, -window.dilation[0], 0},
                      .width = {0, 0, -window.dilation[1]}};
    matrix.origin_height = window.padding[0];
    matrix.origin_width = window.padding[1];
    matrix.divisor_height = window.stride[0];
    matrix.divisor_width = window.stride[1];
    matrix.plane_height = y.sizes[2];
    matrix.plane_width = y.sizes[3];
    matrix.step_height = out.height;
    matrix.step_width = out.width;
    matrix.batch_strides = {out.group};
    return matrix;
  }

  /// An array [n, channels, h, w] as a matrix: its pixels by the channels of a group.
  static Matrix pixels(const Operand& operand, const Split& s, std::int64_t channels) {
    Matrix matrix;
    matrix.rows = grid({operand.sizes[0], operand.sizes[2], operand.sizes[3]}, {s.outer, s.height, s.width});
    matrix.columns = line(channels, s.channel);
    matrix.batch_strides = {s.group};
    return matrix;
  }

  /// The weights as a matrix: taps (channel, height, width) by output channels.
  Matrix taps_by_outputs() const {
    Matrix matrix;
    matrix.rows = grid({channels, weight.sizes[2], weight.sizes[3]}, {w[1], w[2], w[3]});
    matrix.columns = line(outputs, w[0]);
    matrix.batch_strides = {outputs * w[0]};
    return matrix;
  }

  /// The weights as a matrix: (output channel, height, width) by input channels.
  Matrix outputs_by_channels() const {
    Matrix matrix;
    matrix.rows = grid({outputs, weight.sizes[2], weight.sizes[3]}, {w[0], w[2], w[3]});
    matrix.columns = line(channels, w[1]);
    matrix.batch_strides = {outputs * w[0]};
    return matrix;
  }
};

Product convolution_product(const compile::Primitive& primitive) {
  const ConvolutionMatrices c(primitive);
  Product product;
  product.batch = {c.groups};
  if (c.computes_y()) {
    product.a = c.windows();
    product.b = c.taps_by_outputs();
    product.c = ConvolutionMatrices::pixels(c.y, c.out, c.outputs);
  } else if (c.computes_x()) {
    product.a = c.touched();
    product.b = c.outputs_by_channels();
    product.c = ConvolutionMatrices::pixels(c.x, c.in, c.channels);
  } else {
    product.a = c.windows().transposed();
    product.b = ConvolutionMatrices::pixels(c.y, c.out, c.outputs);
    product.c = c.taps_by_outputs();
  }
  return product;
}

/// Merges neighbouring axes of two sides that are walked together, where both step through memory without a jump.
void merge(Side& first, Side& second) {
  for (std::size_t outer = 0; outer < 2; ++outer) {
    const std::size_t inner = outer + 1;
    const auto joined = [&](const Side& side) {
      const bool flat = side.height == std::array<std::int64_t, 3>{} && side.width == std::array<std::int64_t, 3>{};
      return flat && (side.size[outer] == 1 || side.step[outer] == side.step[inner] * side.size[inner]);
    };
    if (!joined(first) || !joined(second)) continue;
    for (Side* side : {&first, &second}) {
      side->size[inner] *= side->size[outer];
      side->size[outer] = 1;
      side->step[outer] = 0;
    }
  }
}

Product described(const compile::Primitive& contraction) {
  return contraction.op == Op::matmul ? matrix_product(contraction) : convolution_product(contraction);
}

}  // namespace

Product product_of(const compile::Primitive& contraction) {
  Product product = described(contraction);
  product.dtype = input_access(contraction, 0).dtype;
  merge(product.a.rows, product.c.rows);
  merge(product.b.columns, product.c.columns);
  merge(product.a.columns, product.b.rows);
  const bool columns_run = product.c.columns.step[2] == 1 || product.c.columns.count() == 1;
  const bool rows_run = product.c.rows.step[2] == 1;
  if (rows_run && (!columns_run || product.c.columns.count() == 1)) {
    product.turned = true;
    std::swap(product.a, product.b);
    std::swap(product.a_input, product.b_input);
    product.a = product.a.transposed();
    product.b = product.b.transposed();
    product.c = product.c.transposed();
  }
  return product;
}

Matrix result_matrix(const compile::Primitive& contraction, bool turned) {
  const Matrix c = described(contraction).c;
  return turned ? c.transposed() : c;
}

}  // namespace russet::cpu
