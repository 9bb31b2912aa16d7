#include "compile/indices.h"

#include "graph/index_check.h"
#include "ops/failures.h"
#include "ops/table.h"

namespace russet::compile {

std::span<const Operand> indices_of(const Primitive& primitive) {
  return std::span(primitive.inputs).subspan(primitive.op == ops::Op::take ? 1 : 2);
}

void require_indices(const Primitive& primitive, const Bindings& bindings) {
  const auto& indexing = std::get<ops::Indexing>(primitive.attributes);
  const Shape& array = primitive.inputs[0].sizes;
  auto index = indices_of(primitive).begin();
  for (int axis = 0; axis < indexing.axes; ++axis) {
    if (!indexing.is_by_tensor(axis)) continue;
    const auto& [access, sizes] = *index++;
    std::int64_t offset = access.offset;
    if (access.offset_argument >= 0) offset += static_cast<std::int64_t>(bindings.arguments[access.offset_argument]);
    const std::int64_t size = array[axis];
    const auto stray = graph::find_stray(bindings.slots[access.slot], access.dtype, {sizes, access.strides, offset},
                                         indexing.from_end ? -size : 0, size);
    if (!stray) continue;
    ops::throw_out_of_range(ops::row(primitive.op).name, stray->value, axis, size, stray->place, numel(sizes));
  }
}

}  // namespace russet::compile
