// Tensor's conversions, copies and in-place writes. Every write goes through autograd::assign.
#include <fmt/format.h>
#include <russet/functional/movement.h>

#include "functional/build.h"
#include "functional/write.h"
#include "graph/axis_order.h"

namespace russet {

namespace functional {

const Tensor& write(const char* function, const Tensor& target, const Tensor& result) {
  if (!can_cast(result.dtype(), target.dtype())) {
    throw TypeError(fmt::format("{}: a result of type {} cannot be written into a tensor of type {}", function,
                                name_of(result.dtype()), name_of(target.dtype())));
  }
  if (result.sizes() != target.sizes()) {
    throw ShapeError(fmt::format("{}: the result's shape {} is not that of the tensor written to, {}", function,
                                 to_string(result.sizes()), to_string(target.sizes())));
  }
  autograd::assign(target, result);
  return target;
}

}  // namespace functional

Tensor Tensor::to(DType dtype) const { return functional::cast(*this, dtype); }

Tensor Tensor::to(Device device) const {
  const Device home = this->device();
  if (home == device) return *this;
  const Tensor moved = graph::moved(*this, device);
  if (!requires_grad()) return moved;
  return autograd::with_gradient(
      "to", {*this}, moved, {}, false,
      [home](const Tensor& gradient, std::span<const Tensor>) { return std::vector<Tensor>{gradient.to(home)}; });
}

Tensor clone(const Tensor& x) {
  if (x.strides() == contiguous_strides(x.sizes())) return functional::copied(x);
  const Strides strides = graph::copy_strides(functional::geometry_of(x));
  const Tensor image =
      functional::aliased(x, graph::reordered(functional::geometry_of(x), graph::memory_order(strides)));
  return autograd::reshaped_result(functional::copied(image), {x.sizes(), strides, 0});
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : functional::copied(*this); }

const Tensor& Tensor::copy_(const Tensor& src) const {
  autograd::assign(*this, src.to(device()));
  return *this;
}

const Tensor& Tensor::fill_(Scalar value) const {
  autograd::assign(*this, functional::held_number("fill_", value, dtype(), device()), autograd::Overlap::allowed);
  return *this;
}

const Tensor& Tensor::zero_() const {
  autograd::assign(*this, functional::constant(0, *this), autograd::Overlap::allowed);
  return *this;
}

}  // namespace russet
