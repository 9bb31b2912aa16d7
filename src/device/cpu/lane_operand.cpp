#include "device/cpu/lane_operand.h"

#include "compile/emit.h"
#include "device/cpu/group/group_kernel.h"
#include "device/cpu/operand.h"

namespace russet::cpu {

using compile::Access;

LaneOperand::LaneOperand(const compile::Operand& operand, int axis, const Strides& wanted)
    : access_(operand.access), sizes_(operand.sizes), strides_(operand.access.strides) {
  if (axis < 0 || strides_[axis] == 1) return;
  strides_ = wanted;
  copy_ = make_group_kernel(compile::emit_copy(sizes_, Access{0, access_.dtype, 0, -1, access_.strides},
                                               Access{1, access_.dtype, 0, -1, strides_}));
  copy_bytes_ = (static_cast<std::size_t>(numel(sizes_)) * size_of(access_.dtype) + 127) / 128 * 128;
}

const std::byte* LaneOperand::prepare(const compile::Bindings& bindings, std::byte* place, std::byte* scratch) const {
  if (!copy_) return address(access_, bindings);
  std::byte* const slots[] = {address(access_, bindings), place};
  copy_->run({slots, nullptr, scratch});
  return place;
}

}  // namespace russet::cpu
