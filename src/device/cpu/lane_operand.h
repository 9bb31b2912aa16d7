#pragma once
// An array whose elements along one axis are neighbours in memory: as it lies, or copied.
#include "device/cpu/implementation.h"

namespace russet::cpu {

class LaneOperand {
 public:
  /// Copied to the dense strides `wanted` if its elements along `axis` are not neighbours; never if `axis` is below 0.
  LaneOperand(const compile::Operand& operand, int axis, const Strides& wanted);

  /// Memory for the copy; 0 if there is none.
  std::size_t copy_bytes() const { return copy_bytes_; }
  /// Memory that making the copy takes.
  std::size_t scratch_bytes() const { return copy_ ? copy_->scratch_bytes() : 0; }
  /// The array's first element; copies the array to `place` before if need be.
  const std::byte* prepare(const compile::Bindings& bindings, std::byte* place, std::byte* scratch) const;

  const Shape& sizes() const { return sizes_; }
  const Strides& strides() const { return strides_; }
  std::int64_t step(int axis) const { return strides_[axis]; }

 private:
  compile::Access access_;
  Shape sizes_;
  Strides strides_;
  std::shared_ptr<const compile::Kernel> copy_;
  std::size_t copy_bytes_ = 0;
};

}  // namespace russet::cpu
