#include "gpu/prologues.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "compile/emit.h"

namespace russet::gputest {

using compile::Operand;

compile::Group plus_one(Operand& input, std::int32_t stored, std::int64_t margin) {
  using compile::Instruction;
  std::vector<int> order;  // axes from the outermost in memory
  for (int axis = 0; axis < input.sizes.rank(); ++axis) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(input.access.strides[a]) > std::abs(input.access.strides[b]); });
  compile::Group group;
  compile::Access source = input.access;
  source.offset = margin;
  source.strides = {};
  for (const int axis : order) {
    group.space.push_back(input.sizes[axis]);
    source.strides.push_back(std::abs(input.access.strides[axis]));
  }
  group.split = group.space.rank();
  compile::Access element = source;
  element.slot = stored;
  if (stored < 0) element.offset = 0;
  group.accesses = {source, element};
  Instruction load{.kind = Instruction::Kind::load, .dtype = source.dtype, .access = 0};
  Instruction one{.kind = Instruction::Kind::constant, .dtype = source.dtype, .number = {.real = 1, .integer = 1}};
  Instruction sum{.kind = Instruction::Kind::compute, .op = ops::Op::add, .dtype = source.dtype, .inputs = {0, 1, -1}};
  Instruction store{.kind = Instruction::Kind::store, .dtype = source.dtype, .inputs = {2, -1, -1}, .access = 1};
  group.code = {load, one, sum, store};
  compile::merge_axes(group);
  input.access.slot = -1;
  input.access.offset -= margin;
  return group;
}

compile::Group cast_of(Operand& image, const Operand& planes) {
  using compile::Instruction;
  compile::Group group;
  compile::Access source = planes.access;
  compile::Access element = image.access;
  element.slot = -1;
  element.offset = 0;
  source.strides = element.strides = {};
  for (const int axis : {0, 2, 3, 1}) {
    group.space.push_back(image.sizes[axis]);
    source.strides.push_back(planes.access.strides[axis]);
    element.strides.push_back(image.access.strides[axis]);
  }
  group.split = group.space.rank();
  group.accesses = {source, element};
  const DType type = image.access.dtype;
  group.code = {
      {.kind = Instruction::Kind::load, .dtype = DType::float32, .access = 0},
      {.kind = Instruction::Kind::compute, .op = ops::Op::cast, .dtype = type, .inputs = {0, -1, -1}},
      {.kind = Instruction::Kind::store, .dtype = type, .inputs = {1, -1, -1}, .access = 1},
  };
  compile::merge_axes(group);
  image.access.slot = -1;
  image.access.offset = 0;
  return group;
}

}  // namespace russet::gputest
