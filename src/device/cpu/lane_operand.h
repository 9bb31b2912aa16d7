#pragma once
// An input whose elements along one axis are neighbours in memory: as it lies, or copied.
#include "device/cpu/implementation.h"
#include "device/cpu/workspace.h"

namespace russet::cpu {

class LaneOperand {
 public:
  /// Copied to the dense strides `wanted` if its elements along `axis` are not neighbours; never if `axis` is below 0.
  LaneOperand(const compile::Operand& operand, int axis, const Strides& wanted, Workspace& workspace);

  /// The array's first element; makes the copy if there is one.
  const std::byte* prepare(const compile::Bindings& bindings) const;
  template <class T>
  const T* prepare_as(const compile::Bindings& bindings) const {
    return reinterpret_cast<const T*>(prepare(bindings));
  }

  const Shape& sizes() const { return sizes_; }
  const Strides& strides() const { return strides_; }
  std::int64_t step(int axis) const { return strides_[axis]; }

 private:
  compile::Access access_;
  Shape sizes_;
  Strides strides_;
  std::shared_ptr<const compile::Kernel> copier_;  // nullptr: the array is used as it lies
  Scratch<std::byte> copy_, copier_scratch_;
};

}  // namespace russet::cpu
