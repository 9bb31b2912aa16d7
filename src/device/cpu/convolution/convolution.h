#pragma once
// One description for the three contractions of a convolution: y [n, o, h, w] is computed from x [n, c, h, w] and
// weights [o, c / groups, kh, kw]; the result is y, the gradient of x, or the gradient of the weights.
#include "compile/step.h"
#include "device/cpu/taps.h"

namespace russet::cpu {

struct Convolution {
  explicit Convolution(const compile::Primitive& primitive);

  bool computes_y() const { return op == ops::Op::convolution; }
  bool computes_x() const { return op == ops::Op::convolution_input; }
  bool computes_weight() const { return op == ops::Op::convolution_weight; }
  std::int64_t kernel_height() const { return weight.sizes[2]; }
  std::int64_t kernel_width() const { return weight.sizes[3]; }
  /// Taps of a window, of one channel.
  std::int64_t taps() const { return kernel_height() * kernel_width(); }

  bool has_types(DType x_and_y, DType weights) const;
  /// Whether one of the arrays has no elements.
  bool is_empty() const;

  // Borders. By axis (0: height, 1: width) only what lies inside the arrays is listed, so padding is never read; a
  // kernel skips it or writes zeros in its place.
  /// For each position of y: the taps and the positions of x that it is the sum of.
  std::vector<TapRun> taps_of_y(int axis) const;
  /// For each position of x: the taps and the positions of y that use it.
  std::vector<TapRun> taps_of_x(int axis) const;
  /// For each tap: the positions of y at which it lies inside x.
  std::vector<WindowRun> windows_of_taps(int axis) const;

  ops::Op op;
  ops::Window window;
  compile::Operand x, weight, y;
  std::int64_t groups, channels, outputs;  // channels of x and y in a group
};

}  // namespace russet::cpu
