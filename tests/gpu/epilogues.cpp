#include "gpu/epilogues.h"

namespace russet::gputest {

using compile::Operand;
using compile::Primitive;

compile::Group bias_and_relu(const Primitive& primitive, const Operand& bias, int axis) {
  using compile::Instruction;
  compile::Group group;
  group.space = primitive.output.sizes;
  group.split = group.space.rank();
  compile::Access along = bias.access;
  along.strides = Strides::filled(group.space.rank(), 0);
  along.strides[axis] = bias.access.strides[0];
  compile::Access result = primitive.output.access;
  result.slot = -1;
  group.accesses = {result, along, primitive.output.access};
  Instruction instruction;
  instruction.dtype = primitive.output.access.dtype;
  const auto add = [&](Instruction::Kind kind, ops::Op op, std::int16_t access, std::int16_t a, std::int16_t b) {
    instruction.kind = kind;
    instruction.op = op;
    instruction.access = access;
    instruction.inputs = {a, b, -1};
    group.code.push_back(instruction);
  };
  add(Instruction::Kind::load, ops::Op::leaf, 0, -1, -1);
  add(Instruction::Kind::load, ops::Op::leaf, 1, -1, -1);
  add(Instruction::Kind::compute, ops::Op::add, -1, 0, 1);
  add(Instruction::Kind::constant, ops::Op::constant, -1, -1, -1);
  add(Instruction::Kind::compute, ops::Op::maximum, -1, 2, 3);
  add(Instruction::Kind::store, ops::Op::leaf, 2, 4, -1);
  return group;
}

compile::Group update(const Primitive& primitive, const Operand& state, std::int32_t old_state,
                      std::int32_t old_output) {
  using compile::Instruction;
  compile::Group group;
  group.space = primitive.output.sizes;
  group.split = group.space.rank();
  const compile::Access& output = primitive.output.access;
  group.accesses = {output, state.access, state.access, output, output};
  group.accesses[0].slot = -1;
  group.accesses[1].slot = old_state;
  group.accesses[3].slot = old_output;
  const auto add = [&](Instruction::Kind kind, ops::Op op, std::int16_t access, std::int16_t a, std::int16_t b) {
    group.code.push_back({.kind = kind, .op = op, .dtype = output.dtype, .inputs = {a, b, -1}, .access = access});
  };
  add(Instruction::Kind::load, ops::Op::leaf, 0, -1, -1);
  add(Instruction::Kind::load, ops::Op::leaf, 1, -1, -1);
  add(Instruction::Kind::compute, ops::Op::add, -1, 1, 0);
  add(Instruction::Kind::store, ops::Op::leaf, 2, 2, -1);
  add(Instruction::Kind::load, ops::Op::leaf, 3, -1, -1);
  add(Instruction::Kind::compute, ops::Op::sub, -1, 4, 2);
  add(Instruction::Kind::store, ops::Op::leaf, 4, 5, -1);
  return group;
}

compile::Group sums_of_columns(const Primitive& primitive, const Operand& sums, ops::Op reduction) {
  using compile::Instruction;
  compile::Group group;
  group.kind = compile::Group::Kind::column;
  group.space = primitive.output.sizes;
  group.split = group.space.rank() - 1;
  compile::Access across = sums.access;
  across.strides = Strides::filled(group.space.rank(), 0);
  across.strides[group.split] = sums.access.strides[0];
  compile::Access result = primitive.output.access;
  result.slot = -1;
  group.accesses = {result, primitive.output.access, across};
  Instruction instruction;
  instruction.dtype = primitive.output.access.dtype;
  const auto add = [&](Instruction::Kind kind, ops::Op op, compile::Extent extent, std::int16_t access,
                       std::int16_t input) {
    instruction.kind = kind;
    instruction.op = op;
    instruction.extent = extent;
    instruction.access = access;
    instruction.inputs = {input, -1, -1};
    group.code.push_back(instruction);
  };
  add(Instruction::Kind::load, ops::Op::leaf, compile::Extent::full, 0, -1);
  add(Instruction::Kind::store, ops::Op::leaf, compile::Extent::full, 1, 0);
  add(Instruction::Kind::reduce, reduction, compile::Extent::reduced, -1, 0);
  add(Instruction::Kind::store, ops::Op::leaf, compile::Extent::reduced, 2, 2);
  return group;
}

}  // namespace russet::gputest
