#include "device/cpu/lane_operand.h"

#include "compile/emit.h"
#include "device/cpu/group/group_kernel.h"
#include "device/cpu/operand.h"

namespace russet::cpu {

using compile::Access;

LaneOperand::LaneOperand(const compile::Operand& operand, int axis, const Strides& wanted, Workspace& workspace)
    : access_(operand.access), sizes_(operand.sizes), strides_(operand.access.strides) {
  if (axis < 0 || strides_[axis] == 1) return;
  strides_ = wanted;
  copier_ = make_group_kernel(compile::emit_copy(sizes_, Access{0, access_.dtype, 0, -1, access_.strides},
                                                 Access{1, access_.dtype, 0, -1, strides_}));
  copy_ = workspace.add<std::byte>(numel(sizes_) * static_cast<std::int64_t>(size_of(access_.dtype)));
  copier_scratch_ = workspace.add<std::byte>(static_cast<std::int64_t>(copier_->scratch_bytes()));
}

const std::byte* LaneOperand::prepare(const compile::Bindings& bindings) const {
  if (!copier_) return address(access_, bindings);
  std::byte* const slots[] = {address(access_, bindings), copy_.at(bindings)};
  copier_->run({slots, nullptr, copier_scratch_.at(bindings)});
  return copy_.at(bindings);
}

}  // namespace russet::cpu
