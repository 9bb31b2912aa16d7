#include "device/cpu/convolution/convolution.h"

#include "device/cpu/operand.h"

namespace russet::cpu {

Convolution::Convolution(const compile::Primitive& primitive)
    : op(primitive.op),
      window(attribute<ops::Window>(primitive)),
      x(computes_x() ? primitive.output : primitive.inputs[0]),
      weight(computes_weight() ? primitive.output : primitive.inputs[1]),
      y(computes_y() ? primitive.output : primitive.inputs[computes_x() ? 0 : 1]),
      groups(window.groups),
      channels(weight.sizes[1]),
      outputs(weight.sizes[0] / groups) {}

bool Convolution::has_types(DType x_and_y, DType weights) const {
  return x.access.dtype == x_and_y && y.access.dtype == x_and_y && weight.access.dtype == weights;
}

bool Convolution::is_empty() const { return numel(x.sizes) == 0 || numel(weight.sizes) == 0 || numel(y.sizes) == 0; }

std::vector<TapRun> Convolution::taps_of_y(int axis) const {
  return gathered_taps(window, axis, weight.sizes[axis + 2], x.sizes[axis + 2], y.sizes[axis + 2]);
}

std::vector<TapRun> Convolution::taps_of_x(int axis) const {
  return scattered_taps(window, axis, weight.sizes[axis + 2], x.sizes[axis + 2], y.sizes[axis + 2]);
}

std::vector<WindowRun> Convolution::windows_of_taps(int axis) const {
  return tap_windows(window, axis, weight.sizes[axis + 2], x.sizes[axis + 2], y.sizes[axis + 2]);
}

}  // namespace russet::cpu
