// Tensor's conversions, copies and in-place writes. Every write goes through autograd::assign.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/random.h>

#include "functional/build.h"
#include "functional/write.h"
#include "graph/axis_order.h"

namespace russet {

using functional::write;

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

Tensor Tensor::clone() const {
  const Tensor& x = *this;
  if (strides() == contiguous_strides(sizes())) return functional::copied(x);
  const Strides strides = graph::copy_strides(functional::geometry_of(x));
  const Tensor image =
      functional::aliased(x, graph::reordered(functional::geometry_of(x), graph::memory_order(strides)));
  return autograd::reshaped_result(functional::copied(image), {sizes(), strides, 0});
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : functional::copied(*this); }

const Tensor& Tensor::copy_(const Tensor& source) const {
  autograd::assign(*this, source.to(device()));
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

const Tensor& Tensor::add_(const Tensor& other, Scalar alpha) const {
  return write("add_", *this, add(*this, other, alpha));
}
const Tensor& Tensor::add_(Scalar other) const { return write("add_", *this, add(*this, other)); }
const Tensor& Tensor::sub_(const Tensor& other, Scalar alpha) const {
  return write("sub_", *this, sub(*this, other, alpha));
}
const Tensor& Tensor::sub_(Scalar other) const { return write("sub_", *this, sub(*this, other)); }
const Tensor& Tensor::mul_(const Tensor& other) const { return write("mul_", *this, mul(*this, other)); }
const Tensor& Tensor::mul_(Scalar other) const { return write("mul_", *this, mul(*this, other)); }
const Tensor& Tensor::div_(const Tensor& other) const { return write("div_", *this, div(*this, other)); }
const Tensor& Tensor::div_(Scalar other) const { return write("div_", *this, div(*this, other)); }

const Tensor& neg_(const Tensor& x) { return write("neg_", x, neg(x)); }
const Tensor& exp_(const Tensor& x) { return write("exp_", x, exp(x)); }
const Tensor& sqrt_(const Tensor& x) { return write("sqrt_", x, sqrt(x)); }
const Tensor& reciprocal_(const Tensor& x) { return write("reciprocal_", x, reciprocal(x)); }
const Tensor& sigmoid_(const Tensor& x) { return write("sigmoid_", x, sigmoid(x)); }
const Tensor& tanh_(const Tensor& x) { return write("tanh_", x, tanh(x)); }
const Tensor& pow_(const Tensor& x, Scalar exponent) { return write("pow_", x, pow(x, exponent)); }
const Tensor& clamp_(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  return write("clamp_", x, clamp(x, min, max));
}
const Tensor& lerp_(const Tensor& start, const Tensor& end, Scalar weight) {
  return write("lerp_", start, lerp(start, end, weight));
}
const Tensor& addcmul_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  return write("addcmul_", x, addcmul(x, a, b, value));
}
const Tensor& addcdiv_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  return write("addcdiv_", x, addcdiv(x, a, b, value));
}

}  // namespace russet
