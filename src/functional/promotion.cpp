#include "functional/promotion.h"

#include <russet/functional/comparison.h>

#include <optional>

#include "autograd/tape.h"
#include "functional/build.h"

namespace russet::functional {
namespace {

using MaybeType = std::optional<DType>;

void widen(MaybeType& type, DType other) { type = type ? promote(*type, other) : other; }

// c10's combine_categories: the lower priority counts only where its category is higher.
MaybeType combine(MaybeType higher, MaybeType lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_floating(*higher)) return higher;
  if (*higher == DType::boolean || is_floating(*lower)) return promote(*higher, *lower);
  return higher;
}

Device device_of(const Operand& x, const Operand& y) {
  if (x.is_number()) return y.tensor().device();
  if (y.is_number()) return x.tensor().device();
  const bool x_moves = x.tensor().dim() == 0 && x.tensor().device().type == DeviceType::cpu;
  return x_moves ? y.tensor().device() : x.tensor().device();
}

Tensor materialised(const Operand& operand, DType dtype, Device device) {
  if (operand.is_number()) return number(operand.number(), dtype, device);
  const Tensor& tensor = operand.tensor();
  if (tensor.dim() == 0 && tensor.device().type == DeviceType::cpu && !(tensor.device() == device)) {
    return cast(tensor.to(device), dtype);
  }
  return cast(tensor, dtype);
}

Promoted promoted_to(DType dtype, const Operand& x, const Operand& y) {
  const Device device = device_of(x, y);
  return {materialised(x, dtype, device), materialised(y, dtype, device)};
}

}  // namespace

DType result_type(std::span<const Operand> operands) {
  MaybeType dimensioned;
  MaybeType dimensionless;
  MaybeType numbers;
  for (const Operand& operand : operands) {
    if (operand.is_number()) {
      const DType kind = operand.number().kind();
      widen(numbers, kind == DType::float64 ? DType::float32 : kind);
    } else {
      widen(operand.tensor().dim() > 0 ? dimensioned : dimensionless, operand.tensor().dtype());
    }
  }
  return combine(dimensioned, combine(dimensionless, numbers)).value_or(DType::float32);
}

Promoted promoted(const Operand& x, const Operand& y) { return promoted_to(result_type(x, y), x, y); }

Promoted promoted_floating(const Operand& x, const Operand& y) {
  const DType dtype = result_type(x, y);
  return promoted_to(is_floating(dtype) ? dtype : DType::float32, x, y);
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  graph::NodeInfo given;
  given.dtype = dtype;
  return autograd::apply(ops::Op::cast, {x}, std::move(given));
}

Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::float32); }

Tensor wide(const Tensor& x) { return x.dtype() == DType::float64 ? x : cast(x, DType::float32); }

Tensor truth(const Tensor& x) {
  if (x.dtype() == DType::boolean) return x;
  return autograd::apply(ops::Op::ne, {x, constant(0, x)});
}

bool can_cast(DType from, DType to) {
  if (is_floating(from) && !is_floating(to)) return false;
  return from == DType::boolean || to != DType::boolean;
}

}  // namespace russet::functional
