// Which index of a contraction stands for what, operator by operator.
#include <algorithm>
#include <initializer_list>

#include "device/gpu/templates/contraction.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

/// Makes an axis of three levels flat if its elements are evenly spaced, and nothing of it goes to a window.
void flatten(ContractionAxis& axis, std::int64_t extent) {
  if (!axis.splits) return;
  for (int i = 0; i < 2; ++i) {
    if (axis.y_strides[i] != 0 || axis.x_strides[i] != 0) return;
  }
  if (axis.y_start != 0 || axis.x_start != 0) return;
  const std::int64_t inner = axis.sizes[0] * axis.sizes[1];
  const std::int64_t sizes[3] = {inner == 0 ? 0 : extent / inner, axis.sizes[0], axis.sizes[1]};
  std::int64_t stride = 0;
  std::int64_t reach = 0;  // stride times size of the levels so far; 0 while all had one element
  for (int level = 2; level >= 0; --level) {
    if (sizes[level] <= 1) continue;
    if (reach == 0) {
      stride = axis.strides[level];
    } else if (axis.strides[level] != reach) {
      return;
    }
    reach = axis.strides[level] * sizes[level];
    if (reach == 0) return;  // repeated elements
  }
  axis = {};
  axis.strides[2] = stride;
}

void flatten_all(Contraction& c) {
  flatten(c.left_line, c.rows);
  flatten(c.row, c.rows);
  flatten(c.right_line, c.columns);
  flatten(c.column, c.columns);
  flatten(c.left_step, c.depth);
  flatten(c.right_step, c.depth);
}

/// Strides of the axes before the last two over the batch axes of the result.
Strides batch_strides(const Operand& operand, int batch_rank) {
  Strides strides = Strides::filled(batch_rank, 0);
  const int own = operand.sizes.rank() - 2;
  for (int axis = 0; axis < own; ++axis) {
    if (operand.sizes[axis] != 1) strides[batch_rank - own + axis] = operand.access.strides[axis];
  }
  return strides;
}

void add_batch_axis(Contraction& c, std::int64_t size, std::int64_t left, std::int64_t right, std::int64_t result) {
  if (size == 1) return;
  const int last = c.batch.rank() - 1;
  if (last >= 0 && c.left_batch[last] == size * left && c.right_batch[last] == size * right &&
      c.result_batch[last] == size * result) {
    c.batch[last] *= size;
    c.left_batch[last] = left;
    c.right_batch[last] = right;
    c.result_batch[last] = result;
    return;
  }
  c.batch.push_back(size);
  c.left_batch.push_back(left);
  c.right_batch.push_back(right);
  c.result_batch.push_back(result);
}

/// Merges a batch axis that only the left factor has into its rows, if all of them are evenly spaced.
void fold_batch_into_rows(Contraction& c) {
  while (!c.batch.empty()) {
    const int last = c.batch.rank() - 1;
    if (c.right_batch[last] != 0 || c.left_batch[last] != c.rows * c.left_line.strides[2] ||
        c.result_batch[last] != c.rows * c.row.strides[2]) {
      return;
    }
    c.rows *= c.batch[last];
    c.batch.pop_back();
    c.left_batch.pop_back();
    c.right_batch.pop_back();
    c.result_batch.pop_back();
  }
}

Contraction matrix_product(const Primitive& primitive) {
  const Operand& left = primitive.inputs[0];
  const Operand& right = primitive.inputs[1];
  const Operand& result = primitive.output;
  const int rank = result.sizes.rank() - 2;
  const auto stride = [](const Operand& operand, int from_end) {
    return operand.access.strides[operand.sizes.rank() - from_end];
  };
  Contraction c;
  c.rows = result.sizes[rank];
  c.columns = result.sizes[rank + 1];
  c.depth = left.sizes.back();
  c.left_line.strides[2] = stride(left, 2);
  c.left_step.strides[2] = stride(left, 1);
  c.right_step.strides[2] = stride(right, 2);
  c.right_line.strides[2] = stride(right, 1);
  c.row.strides[2] = stride(result, 2);
  c.column.strides[2] = stride(result, 1);
  const Strides left_batch = batch_strides(left, rank);
  const Strides right_batch = batch_strides(right, rank);
  for (int axis = 0; axis < rank; ++axis) {
    add_batch_axis(c, result.sizes[axis], left_batch[axis], right_batch[axis], result.access.strides[axis]);
  }
  fold_batch_into_rows(c);
  return c;
}

/// (image, y, x) of [n, c, h, w]; positions in the plane count only if they do not go through a window.
ContractionAxis pixels(const Operand& operand, bool through_window) {
  const Strides& s = operand.access.strides;
  ContractionAxis axis;
  axis.splits = true;
  axis.strides = {s[0], through_window ? 0 : s[2], through_window ? 0 : s[3]};
  axis.sizes = {operand.sizes[2], operand.sizes[3]};
  return axis;
}

/// (y, x, channel) of a window over `channels`, of a tensor whose strides are these.
ContractionAxis taps(const Shape& weight, std::int64_t channels, std::int64_t y, std::int64_t x, std::int64_t channel) {
  ContractionAxis axis;
  axis.splits = true;
  axis.strides = {y, x, channel};
  axis.sizes = {weight[3], channels};
  return axis;
}

/// Replaces a window that needs no bounds check by plain strides.
void fold_window(Contraction& c, ContractionAxis& pixel, ContractionAxis& tap) {
  pixel.strides[1] += c.y_stride * pixel.y_strides[1];
  pixel.strides[2] += c.x_stride * pixel.x_strides[1];
  tap.strides[0] += c.y_stride * tap.y_strides[0];
  tap.strides[1] += c.x_stride * tap.x_strides[0];
  for (ContractionAxis* axis : {&pixel, &tap}) {
    axis->y_strides = axis->x_strides = {0, 0};
    axis->y_start = axis->x_start = 0;
  }
  c.window = WindowSide::none;
}

/// The side that reads `operand` through the window: at pixel * step - padding + tap * dilation, or where the opposite
/// of that leads.
void open_window(Contraction& c, WindowSide side, const Window& window, const Operand& operand, bool transposed) {
  ContractionAxis& pixel = side == WindowSide::left ? c.left_line : c.right_step;
  ContractionAxis& tap = side == WindowSide::left ? c.left_step : c.right_line;
  const std::int64_t sign = transposed ? -1 : 1;
  c.window = side;
  c.y_stride = operand.access.strides[2];
  c.x_stride = operand.access.strides[3];
  c.height = operand.sizes[2];
  c.width = operand.sizes[3];
  pixel.y_strides[1] = transposed ? 1 : window.stride[0];
  pixel.x_strides[1] = transposed ? 1 : window.stride[1];
  pixel.y_start = -sign * window.padding[0];
  pixel.x_start = -sign * window.padding[1];
  tap.y_strides[0] = sign * window.dilation[0];
  tap.x_strides[0] = sign * window.dilation[1];
  if (transposed) c.divisors = {window.stride[0], window.stride[1]};
}

bool without_padding(const Window& window) {
  return window.padding[0] == 0 && window.padding[1] == 0 && window.padding_after[0] == 0 &&
         window.padding_after[1] == 0;
}

Contraction convolution(const Primitive& primitive, bool folds_windows) {
  const auto& window = attribute<Window>(primitive);
  const bool forward = primitive.op == Op::convolution;
  const bool to_weight = primitive.op == Op::convolution_weight;
  const Operand& x = primitive.op == Op::convolution_input ? primitive.output : primitive.inputs[0];
  const Operand& weight = to_weight ? primitive.output : primitive.inputs[1];
  const Operand& y = forward ? primitive.output : primitive.inputs[to_weight ? 1 : 0];
  const Strides& xs = x.access.strides;
  const Strides& ws = weight.access.strides;
  const Strides& ys = y.access.strides;
  const std::int64_t groups = window.groups;
  const std::int64_t inputs = weight.sizes[1];
  const std::int64_t outputs = weight.sizes[0] / groups;
  const std::int64_t area = weight.sizes[2] * weight.sizes[3];
  const std::int64_t x_group = inputs * xs[1];
  const std::int64_t y_group = outputs * ys[1];
  const std::int64_t weight_group = outputs * ws[0];
  Contraction c;
  c.channels_last_batch = true;
  if (forward) {
    c.rows = y.sizes[0] * y.sizes[2] * y.sizes[3];
    c.columns = outputs;
    c.depth = area * inputs;
    c.left_line = pixels(y, true);
    c.left_line.strides[0] = xs[0];
    c.left_step = taps(weight.sizes, inputs, 0, 0, xs[1]);
    c.right_step = taps(weight.sizes, inputs, ws[2], ws[3], ws[1]);
    c.right_line.strides[2] = ws[0];
    c.row = pixels(y, false);
    c.column.strides[2] = ys[1];
    open_window(c, WindowSide::left, window, x, false);
    if (folds_windows && without_padding(window)) fold_window(c, c.left_line, c.left_step);
    add_batch_axis(c, groups, x_group, weight_group, y_group);
  } else if (to_weight) {
    c.left_input = 1;
    c.right_input = 0;
    c.rows = outputs;
    c.columns = area * inputs;
    c.depth = y.sizes[0] * y.sizes[2] * y.sizes[3];
    c.left_line.strides[2] = ys[1];
    c.left_step = pixels(y, false);
    c.right_step = pixels(y, true);
    c.right_step.strides[0] = xs[0];
    c.right_line = taps(weight.sizes, inputs, 0, 0, xs[1]);
    c.row.strides[2] = ws[0];
    c.column = taps(weight.sizes, inputs, ws[2], ws[3], ws[1]);
    open_window(c, WindowSide::right, window, x, false);
    if (folds_windows && without_padding(window)) fold_window(c, c.right_step, c.right_line);
    add_batch_axis(c, groups, y_group, x_group, weight_group);
  } else {
    c.rows = x.sizes[0] * x.sizes[2] * x.sizes[3];
    c.columns = inputs;
    c.depth = area * outputs;
    c.left_line = pixels(x, true);
    c.left_line.strides[0] = ys[0];
    c.left_step = taps(weight.sizes, outputs, 0, 0, ys[1]);
    c.right_step = taps(weight.sizes, outputs, ws[2], ws[3], ws[0]);
    c.right_line.strides[2] = ws[1];
    c.row = pixels(x, false);
    c.column.strides[2] = xs[1];
    open_window(c, WindowSide::left, window, y, true);
    const bool same_pixels = area == 1 && window.stride[0] == 1 && window.stride[1] == 1 && without_padding(window);
    if (folds_windows && same_pixels) fold_window(c, c.left_line, c.left_step);
    add_batch_axis(c, groups, y_group, weight_group, x_group);
  }
  return c;
}

bool are_multiples(std::int64_t width, std::initializer_list<std::int64_t> numbers) {
  return std::ranges::all_of(numbers, [&](std::int64_t number) { return number % width == 0; });
}

/// The innermost elements of an axis, which lie evenly.
std::int64_t inner_size(const ContractionAxis& axis, std::int64_t extent) {
  return axis.splits ? axis.sizes[1] : extent;
}

}  // namespace

Contraction describe_contraction(const Primitive& primitive) {
  Contraction c = primitive.op == Op::matmul ? matrix_product(primitive) : convolution(primitive, true);
  flatten_all(c);
  return c;
}

Contraction describe_windows(const Primitive& primitive) {
  Contraction c = convolution(primitive, false);
  c.in_pairs = true;
  flatten(c.row, c.rows);
  flatten(c.column, c.columns);
  return c;
}

namespace {

/// Along one axis: of the pixels at remainder + i * stride, how many there are, and the taps first + j * stride that
/// come to them, of which tap j reads at i + start - j.
struct Remainder {
  std::int64_t pixels, first, taps, start;
};

Remainder remainder_of(std::int64_t remainder, std::int64_t stride, std::int64_t padding, std::int64_t size,
                       std::int64_t kernel) {
  const std::int64_t first = (remainder + padding) % stride;
  return {(size - remainder + stride - 1) / stride, first, first < kernel ? (kernel - 1 - first) / stride + 1 : 0,
          (remainder + padding - first) / stride};
}

}  // namespace

std::vector<Contraction> describe_remainders(const Primitive& primitive) {
  if (primitive.op != Op::convolution_input) return {};
  const auto& window = attribute<Window>(primitive);
  const bool strided = window.stride[0] > 1 || window.stride[1] > 1;
  if (!strided || window.dilation[0] != 1 || window.dilation[1] != 1 || window.groups != 1) return {};
  const Strides& gradient = primitive.inputs[0].access.strides;
  const Strides& weight = primitive.inputs[1].access.strides;
  const Strides& result = primitive.output.access.strides;
  const Shape& sizes = primitive.output.sizes;
  const Shape& kernel = primitive.inputs[1].sizes;
  std::vector<Contraction> contractions;
  for (std::int64_t y = 0; y < window.stride[0]; ++y) {
    for (std::int64_t x = 0; x < window.stride[1]; ++x) {
      const Remainder down = remainder_of(y, window.stride[0], window.padding[0], sizes[2], kernel[2]);
      const Remainder across = remainder_of(x, window.stride[1], window.padding[1], sizes[3], kernel[3]);
      if (down.pixels <= 0 || across.pixels <= 0) continue;
      Contraction c = convolution(primitive, false);
      c.rows = sizes[0] * down.pixels * across.pixels;
      c.depth = down.taps * across.taps * kernel[0];
      c.left_line.sizes = {down.pixels, across.pixels};
      c.left_line.y_start = down.start;
      c.left_line.x_start = across.start;
      c.left_step.sizes[0] = c.right_step.sizes[0] = across.taps;
      c.left_step.y_strides[0] = c.left_step.x_strides[0] = -1;
      c.right_step.strides = {window.stride[0] * weight[2], window.stride[1] * weight[3], weight[0]};
      if (c.depth > 0) c.right_first = down.first * weight[2] + across.first * weight[3];
      c.row.strides = {result[0], window.stride[0] * result[2], window.stride[1] * result[3]};
      c.row.sizes = {down.pixels, across.pixels};
      c.result_first = y * result[2] + x * result[3];
      c.divisors = {1, 1};
      c.left_line.strides[0] = gradient[0];
      flatten_all(c);
      contractions.push_back(std::move(c));
    }
  }
  return contractions;
}

bool is_along_depth(const ContractionAxis& step) { return step.strides[2] == 1; }

bool is_pointwise(const Primitive& convolution) {
  const auto& window = attribute<ops::Window>(convolution);
  const std::array<std::int32_t, 2> ones{1, 1};
  const std::array<std::int32_t, 2> zeros{0, 0};
  return window.kernel == ones && window.stride == ones && window.padding == zeros && window.padding_after == zeros &&
         window.groups == 1;
}

bool is_in_vectors(const Primitive& primitive, const Contraction& c, bool left, std::int64_t width) {
  const Operand& operand = primitive.inputs[static_cast<std::size_t>(left ? c.left_input : c.right_input)];
  const std::int64_t bytes = width * static_cast<std::int64_t>(size_of(operand.access.dtype));
  const Placed placed = place(operand, false);
  const ContractionAxis& line = left ? c.left_line : c.right_line;
  const ContractionAxis& step = left ? c.left_step : c.right_step;
  const Strides& batch = left ? c.left_batch : c.right_batch;
  if (!left && !are_multiples(width, {c.right_first})) return false;
  if (placed.first % width != 0 || placed.region.offset % bytes != 0 || placed.region.scale % bytes != 0) return false;
  if (!std::ranges::all_of(batch, [&](std::int64_t stride) { return stride % width == 0; })) return false;
  if (c.window == (left ? WindowSide::left : WindowSide::right) && !are_multiples(width, {c.y_stride, c.x_stride}))
    return false;
  const bool along = is_along_depth(step);
  const ContractionAxis& inner = along ? step : line;
  const ContractionAxis& outer = along ? line : step;
  if (inner.strides[2] != 1 || !are_multiples(width, {inner_size(inner, along ? c.depth : left ? c.rows : c.columns)}))
    return false;
  if (!are_multiples(width, {inner.strides[0], inner.strides[1]})) return false;
  return are_multiples(width, {outer.strides[0], outer.strides[1], outer.strides[2]}) && inner.x_strides[1] == 0;
}

}  // namespace russet::gpu
