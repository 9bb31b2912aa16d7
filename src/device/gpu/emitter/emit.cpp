#include "device/gpu/emitter/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/gpu/emitter/expressions.h"

namespace russet::gpu {

using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

std::string why_not_emitted(const Group& group) {
  const bool typed =
      std::all_of(group.code.begin(), group.code.end(), [](const Instruction& in) { return has_type(in.dtype); });
  if (!typed) return "GPUs compute no float64";
  const auto bound = std::count_if(group.accesses.begin(), group.accesses.end(),
                                   [](const compile::Access& access) { return access.slot >= 0; });
  const auto reductions = std::count_if(group.code.begin(), group.code.end(),
                                        [](const Instruction& in) { return in.kind == Kind::reduce; });
  // Partial results take up to two buffers a reduction.
  if (bound + 2 * reductions > max_buffers) return fmt::format("{} buffers are too many for a kernel", bound);
  if (group.kind == Group::Kind::elementwise) return {};
  std::int64_t first = 1;
  std::int64_t second = 1;
  for (int axis = 0; axis < group.space.rank(); ++axis) (axis < group.split ? first : second) *= group.space[axis];
  if (std::max(first, second) >= std::int64_t{1} << 31) return "rows or columns of 2^31 elements";
  return {};
}

EmittedCalls emit(const Group& group, const GpuContext& context) {
  switch (group.kind) {
    case Group::Kind::elementwise: return emit_elementwise(group, context);
    case Group::Kind::row: return emit_row(group, context);
    case Group::Kind::column: return emit_column(group, context);
  }
  return {};
}

}  // namespace russet::gpu
