#pragma once
// Operands of elementwise functions, and PyTorch's promotion of their types.
#include <russet/tensor.h>
#include <span>

namespace russet::functional {

/// A tensor or a number where either may stand. Refers to the tensor: for arguments only.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor) {}
  Operand(Scalar number) : number_(number) {}
  bool is_number() const { return tensor_ == nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  const Scalar& number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar number_ = 0;
};

/// PyTorch's `result_type`: tensors with axes decide; tensors of no axes, and after them numbers, count only if their
/// category (boolean, integer, floating) is higher. A floating number lifts integers to float32.
DType result_type(std::span<const Operand> operands);
inline DType result_type(const Operand& x, const Operand& y) {
  const Operand both[] = {x, y};
  return result_type(both);
}

struct Promoted {
  Tensor x;
  Tensor y;
  DType dtype() const { return x.dtype(); }
};

/// Both operands as tensors of their common type, on one device (a tensor of no axes on the CPU moves to the other's).
/// Numbers become run-time arguments. Shapes stay: elementwise primitives broadcast.
Promoted promoted(const Operand& x, const Operand& y);
/// As promoted, with booleans and integers turned into float32.
Promoted promoted_floating(const Operand& x, const Operand& y);

/// x in type `dtype`; x itself if it has it.
Tensor cast(const Tensor& x, DType dtype);
/// x, with booleans and integers turned into float32.
Tensor floating(const Tensor& x);
/// x, with float16 and bfloat16 turned into float32 (and integers): for composites that round only their result.
Tensor wide(const Tensor& x);
/// x as booleans: whether each element is not zero.
Tensor truth(const Tensor& x);

/// Whether PyTorch lets a result of type `from` be written in place into `to`.
bool can_cast(DType from, DType to);

}  // namespace russet::functional
