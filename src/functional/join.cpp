// Putting tensors together: cat, stack, pad, roll.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/movement.h>

#include <algorithm>

#include "functional/build.h"

namespace russet {
namespace {

/// PyTorch skips vectors without elements, whatever the other shapes.
bool counts(const Tensor& tensor) { return tensor.dim() != 1 || tensor.numel() > 0; }

void check_part(const Tensor& first, const Tensor& part, int axis) {
  bool fits = part.dim() == first.dim();
  for (int i = 0; fits && i < first.dim(); ++i) fits = i == axis || part.sizes()[i] == first.sizes()[i];
  if (fits) return;
  throw ShapeError(fmt::format("cat: {} does not follow {} along dimension {}: the other sizes must match",
                               to_string(part.sizes()), to_string(first.sizes()), axis));
}

DType common_type(const std::vector<Tensor>& tensors) {
  std::vector<functional::Operand> operands(tensors.begin(), tensors.end());
  return functional::result_type(operands);
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) throw ValueError("cat: there are no tensors");
  const DType dtype = common_type(tensors);
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() == 0) throw ShapeError("cat: a tensor of no dimensions cannot be joined. Use stack");
    if (counts(tensor)) parts.push_back(functional::cast(tensor, dtype));
  }
  if (parts.empty()) return functional::copied(functional::cast(tensors.front(), dtype));
  const Tensor& first = parts.front();
  const int wrapped = wrap_axis(axis, first.dim());
  Shape sizes = first.sizes();
  sizes[wrapped] = 0;
  for (const Tensor& part : parts) {
    check_part(first, part, wrapped);
    sizes[wrapped] += part.sizes()[wrapped];
  }
  if (parts.size() == 1) return functional::copied(first);
  const Strides strides = contiguous_strides(sizes);
  Tensor result = functional::uninitialised(sizes, dtype, first.device());
  std::int64_t start = 0;
  for (const Tensor& part : parts) {
    result = functional::overwritten(result, part, strides, start * strides[wrapped]);
    start += part.sizes()[wrapped];
  }
  return result;
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) throw ValueError("stack: there are no tensors");
  const int wrapped = wrap_axis(axis, tensors.front().dim() + 1);
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors.front().sizes()) {
      throw ShapeError(fmt::format("stack: the shapes differ: {} and {}", to_string(tensors.front().sizes()),
                                   to_string(tensor.sizes())));
    }
    parts.push_back(tensor.unsqueeze(wrapped));
  }
  return cat(parts, wrapped);
}

Tensor roll(const Tensor& x, const DimList& shifts, const DimList& axes) {
  if (axes.dims().empty()) {
    if (shifts.dims().rank() != 1) throw ValueError("roll: one shift is needed where no dimensions are given");
    return roll(x.flatten(), shifts, 0).reshape(x.sizes());
  }
  if (shifts.dims().rank() != axes.dims().rank()) {
    throw ValueError(fmt::format("roll: {} shifts for {} dimensions", shifts.dims().rank(), axes.dims().rank()));
  }
  Tensor result = x;
  for (int i = 0; i < axes.dims().rank(); ++i) {
    const int axis = wrap_axis(axes.dims()[i], x.dim());
    const std::int64_t size = x.dim() == 0 ? 1 : x.sizes()[axis];
    const std::int64_t shift = size == 0 ? 0 : (shifts.dims()[i] % size + size) % size;
    if (shift != 0)
      result = cat({result.narrow(axis, size - shift, shift), result.narrow(axis, 0, size - shift)}, axis);
  }
  return result.shares_storage(x) ? functional::copied(x) : result;
}

namespace {

struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// The padding of each axis, from the first.
std::vector<Padding> paddings(const Tensor& x, const std::vector<std::int64_t>& amounts) {
  const std::size_t axes = amounts.size() / 2;
  if (amounts.size() % 2 != 0 || axes > static_cast<std::size_t>(x.dim())) {
    throw ValueError(fmt::format("pad: {} amounts do not fit {}: two for each dimension, from the last", amounts.size(),
                                 to_string(x.sizes())));
  }
  std::vector<Padding> result(static_cast<std::size_t>(x.dim()));
  for (std::size_t i = 0; i < axes; ++i) result[result.size() - 1 - i] = {amounts[2 * i], amounts[2 * i + 1]};
  return result;
}

/// Negative amounts crop; what is left to add is not negative.
Tensor cropped(Tensor x, std::vector<Padding>& padding) {
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    Padding& amount = padding[i];
    const std::int64_t front = std::max<std::int64_t>(-amount.before, 0);
    const std::int64_t back = std::max<std::int64_t>(-amount.after, 0);
    const std::int64_t left = x.size(axis) - front - back;
    if (left < 0) {
      throw ShapeError(fmt::format("pad: amounts {} and {} leave nothing of dimension {} of {}", amount.before,
                                   amount.after, axis, to_string(x.sizes())));
    }
    if (front > 0 || back > 0) x = x.narrow(axis, front, left);
    amount = {std::max<std::int64_t>(amount.before, 0), std::max<std::int64_t>(amount.after, 0)};
  }
  return x;
}

Tensor padded_with_number(const Tensor& x, const std::vector<Padding>& padding, Scalar value) {
  Shape sizes = x.sizes();
  for (std::size_t i = 0; i < padding.size(); ++i) sizes[static_cast<int>(i)] += padding[i].before + padding[i].after;
  if (sizes == x.sizes()) return functional::copied(x);
  const Strides strides = contiguous_strides(sizes);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < padding.size(); ++i) offset += padding[i].before * strides[static_cast<int>(i)];
  functional::require_held("pad", value, x.dtype());
  const Tensor base = functional::constant(value, x.dtype(), x.device(), sizes);
  return functional::overwritten(base, x, strides, offset);
}

/// What stands before (or after) x along an axis.
Tensor border(const Tensor& x, int axis, std::int64_t amount, bool before, PadMode mode) {
  const std::int64_t size = x.sizes()[axis];
  const std::int64_t most = mode == PadMode::reflect ? size - 1 : mode == PadMode::circular ? size : amount;
  if (amount > most || size == 0) {
    throw ShapeError(
        fmt::format("pad: {} more elements do not follow from dimension {} of size {}", amount, axis, size));
  }
  if (mode == PadMode::replicate) {
    Shape sizes = x.sizes();
    sizes[axis] = amount;
    return x.narrow(axis, before ? 0 : size - 1, 1).expand(sizes);
  }
  if (mode == PadMode::circular) return x.narrow(axis, before ? size - amount : 0, amount);
  return flip(x.narrow(axis, before ? 1 : size - 1 - amount, amount), axis);
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& amounts, PadMode mode, Scalar value) {
  std::vector<Padding> padding = paddings(x, amounts);
  Tensor result = cropped(x, padding);
  if (mode == PadMode::constant) return padded_with_number(result, padding, value);
  for (std::size_t i = padding.size(); i-- > 0;) {
    const auto axis = static_cast<int>(i);
    if (padding[i].before == 0 && padding[i].after == 0) continue;
    std::vector<Tensor> parts{result};
    if (padding[i].before > 0) parts.insert(parts.begin(), border(result, axis, padding[i].before, true, mode));
    if (padding[i].after > 0) parts.push_back(border(result, axis, padding[i].after, false, mode));
    result = cat(parts, axis);
  }
  return result.shares_storage(x) ? functional::copied(result) : result;
}

}  // namespace russet
