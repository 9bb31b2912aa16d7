#include "compile/as_groups.h"

#include <russet/error.h>

#include "ops/table.h"

namespace russet::compile {
namespace {

using ops::Family;
using ops::Op;
using Kind = Instruction::Kind;

template <class Attribute>
const Attribute& attribute(const Primitive& primitive) {
  if (const auto* found = std::get_if<Attribute>(&primitive.attributes)) return *found;
  throw InternalError(std::string(ops::row(primitive.op).name) + ": the step lacks its attributes");
}

/// Writes the code of a group, an instruction at a time.
class Writer {
 public:
  explicit Writer(const Shape& space) {
    group_.space = space;
    group_.split = space.rank();
  }

  std::int16_t load(Access access) {
    Instruction instruction;
    instruction.kind = Kind::load;
    instruction.dtype = access.dtype;
    instruction.access = add_access(std::move(access));
    return add(instruction);
  }

  void store(Access access, std::int16_t value, Extent extent = Extent::full) {
    Instruction instruction;
    instruction.kind = Kind::store;
    instruction.dtype = access.dtype;
    instruction.access = add_access(std::move(access));
    instruction.inputs[0] = value;
    instruction.extent = extent;
    add(instruction);
  }

  /// The row-major position within the space, counted from `first`.
  std::int16_t position(std::int64_t first = 0) {
    Instruction instruction;
    instruction.kind = Kind::index;
    instruction.dtype = DType::int64;
    instruction.access = add_access({-1, DType::int64, first, -1, contiguous_strides(group_.space)});
    return add(instruction);
  }

  std::int16_t add(const Instruction& instruction) {
    group_.code.push_back(instruction);
    return static_cast<std::int16_t>(group_.code.size() - 1);
  }

  std::int16_t cast(std::int16_t value, DType from, DType to) {
    if (from == to) return value;
    Instruction instruction;
    instruction.op = Op::cast;
    instruction.dtype = to;
    instruction.inputs[0] = value;
    return add(instruction);
  }

  Group take() { return std::move(group_); }
  Group& group() { return group_; }

 private:
  std::int16_t add_access(Access access) {
    group_.accesses.push_back(std::move(access));
    return static_cast<std::int16_t>(group_.accesses.size() - 1);
  }

  Group group_;
};

/// An operand seen over the axes of `sizes`: repeated where it lacks an axis or has a single element along it.
Access broadcast_access(const Operand& operand, const Shape& sizes) {
  Access access = operand.access;
  access.strides = Strides::filled(sizes.rank(), 0);
  const Strides& own = operand.access.strides;
  const int missing = sizes.rank() - own.rank();
  for (int axis = 0; axis < own.rank(); ++axis) {
    const bool repeats = operand.sizes.rank() == own.rank() && operand.sizes[axis] == 1;
    if (!repeats) access.strides[missing + axis] = own[axis];
  }
  return access;
}

Group elementwise_group(const Primitive& primitive) {
  const Shape& sizes = primitive.output.sizes;
  Writer writer(sizes);
  Instruction instruction;
  instruction.op = primitive.op;
  instruction.dtype = primitive.output.access.dtype;
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
    instruction.inputs[i] = writer.load(broadcast_access(primitive.inputs[i], sizes));
  }
  writer.store(primitive.output.access, writer.add(instruction));
  return writer.take();
}

Group source_group(const Primitive& primitive) {
  const Access& output = primitive.output.access;
  Writer writer(primitive.output.sizes);
  Instruction instruction;
  instruction.dtype = output.dtype;
  instruction.argument = primitive.argument;
  switch (primitive.op) {
    case Op::iota: {
      const std::int16_t position = writer.position();
      writer.store(output, writer.cast(position, DType::int64, output.dtype));
      return writer.take();
    }
    case Op::scalar: instruction.kind = Kind::scalar; break;
    case Op::constant:
      instruction.kind = Kind::constant;
      instruction.number = attribute<ops::Number>(primitive);
      break;
    default:
      instruction.kind = Kind::random;
      instruction.op = primitive.op;
      instruction.seed = attribute<ops::Seed>(primitive).value;
      instruction.inputs[0] = writer.position(attribute<ops::Seed>(primitive).first);
  }
  writer.store(output, writer.add(instruction));
  return writer.take();
}

/// Kept axes, then reduced ones. Positions among the reduced axes keep their row-major order.
Group reduction_group(const Primitive& primitive) {
  const Operand& input = primitive.inputs[0];
  const auto& axes = attribute<ops::Axes>(primitive);
  Shape space;
  Access from = input.access;
  Access to = primitive.output.access;
  from.strides = to.strides = Strides();
  int kept = 0;
  for (const bool reduced : {false, true}) {
    for (int axis = 0; axis < input.sizes.rank(); ++axis) {
      if (axes.contains(axis) != reduced) continue;
      space.push_back(input.sizes[axis]);
      from.strides.push_back(input.access.strides[axis]);
      to.strides.push_back(reduced ? 0 : primitive.output.access.strides[axis]);
      kept += reduced ? 0 : 1;
    }
  }
  if (kept == space.rank()) {  // nothing to reduce but a single element
    space.push_back(1);
    from.strides.push_back(0);
    to.strides.push_back(0);
  }
  Writer writer(space);
  writer.group().kind = Group::Kind::row;
  writer.group().split = kept;
  Instruction reduce;
  reduce.kind = Kind::reduce;
  reduce.op = primitive.op;
  reduce.dtype = to.dtype;
  reduce.extent = Extent::reduced;
  const std::int16_t loaded = writer.load(from);
  const bool widens = primitive.op == Op::sum || primitive.op == Op::prod;
  reduce.inputs[0] = widens ? writer.cast(loaded, from.dtype, to.dtype) : loaded;
  writer.store(to, writer.add(reduce), Extent::reduced);
  return writer.take();
}

bool is_row_major(const Operand& operand) {
  const Strides strides = contiguous_strides(operand.sizes);
  for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
    if (operand.sizes[axis] != 1 && operand.access.strides[axis] != strides[axis]) return false;
  }
  return true;
}

Group copy_group(const Access& from, const Access& to, const Shape& sizes) {
  Writer writer(sizes);
  writer.store(to, writer.load(from));
  return writer.take();
}

/// The view of a row-major operand.
Access viewed(const Primitive& primitive, const Access& whole) {
  const auto& view = attribute<ops::View>(primitive);
  Access access = whole;
  access.offset += view.offset;
  access.strides = view.strides;
  if (view.dynamic) access.offset_argument = primitive.argument;
  return access;
}

}  // namespace

std::optional<std::vector<Group>> as_groups(const Primitive& primitive) {
  const Operand& output = primitive.output;
  switch (ops::row(primitive.op).family) {
    case Family::elementwise: return std::vector{elementwise_group(primitive)};
    case Family::random: return std::vector{source_group(primitive)};
    case Family::source:
      if (primitive.op == Op::leaf || primitive.op == Op::empty) return std::nullopt;
      return std::vector{source_group(primitive)};
    case Family::reduction: return std::vector{reduction_group(primitive)};
    case Family::movement: {
      const Operand& input = primitive.inputs[0];
      const bool one_argument = !attribute<ops::View>(primitive).dynamic || input.access.offset_argument < 0;
      if (primitive.op == Op::strided) {
        if (!is_row_major(input) || !one_argument) return std::nullopt;
        return std::vector{copy_group(viewed(primitive, input.access), output.access, output.sizes)};
      }
      const bool free = !attribute<ops::View>(primitive).dynamic || output.access.offset_argument < 0;
      if (!is_row_major(output) || !free) return std::nullopt;
      std::vector<Group> groups;
      if (input.access != output.access) groups.push_back(copy_group(input.access, output.access, output.sizes));
      const Operand& value = primitive.inputs[1];
      groups.push_back(copy_group(value.access, viewed(primitive, output.access), value.sizes));
      return groups;
    }
    default: return std::nullopt;
  }
}

}  // namespace russet::compile
