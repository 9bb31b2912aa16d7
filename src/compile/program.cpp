#include "compile/program.h"

#include <fmt/format.h>

#include <bit>

#include "ops/table.h"

namespace russet::compile {

const Value& value_at(const Program& program, ValueId id) { return program.values[static_cast<std::size_t>(id)]; }

std::size_t byte_size(const Value& value) {
  return static_cast<std::size_t>(numel(value.shape)) * size_of(value.dtype);
}

bool is_constant(const Value& value, int number) {
  if (value.op != ops::Op::constant) return false;
  const auto& constant = std::get<ops::Number>(value.attributes);
  return is_floating(value.dtype) ? constant.real == number : constant.integer == number;
}

std::int32_t add_temporary(Program& program, std::size_t bytes) {
  Slot slot;
  slot.kind = Slot::Kind::temporary;
  slot.bytes = bytes;
  program.slots.push_back(slot);
  return static_cast<std::int32_t>(program.slots.size() - 1);
}

std::vector<std::int32_t> count_uses(const Program& program) {
  std::vector<std::int32_t> uses(program.values.size(), 0);
  for (const Value& value : program.values) {
    for (const ValueId input : value.inputs) {
      if (input >= 0) ++uses[static_cast<std::size_t>(input)];
    }
  }
  for (const Output& output : program.outputs) ++uses[static_cast<std::size_t>(output.value)];
  return uses;
}

std::string to_string(const Program& program) {
  std::string text;
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const Value& value = program.values[id];
    text += fmt::format("%{} = {} {} {}(", id, name_of(value.dtype), russet::to_string(value.shape),
                        ops::row(value.op).name);
    for (std::size_t i = 0; i < ops::max_inputs && value.inputs[i] >= 0; ++i) {
      text += fmt::format("{}%{}", i ? ", " : "", value.inputs[i]);
    }
    text += ")\n";
  }
  for (const Output& output : program.outputs) text += fmt::format("output %{}\n", output.value);
  return text;
}

std::string code_of(const Group& group) {
  std::string code;
  const auto add = [&](auto... numbers) {
    for (const auto number : {static_cast<std::int64_t>(numbers)...}) {
      code.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
  };
  add(group.kind, group.space.rank(), group.split, group.accesses.size());
  for (const Access& access : group.accesses) {
    add(access.dtype, access.offset_argument >= 0, access.packed);
    for (const std::int64_t stride : access.strides) add(stride == 0, stride == 1);
  }
  for (const Instruction& in : group.code) {
    add(in.kind, in.op, in.dtype, in.extent, in.access, in.argument >= 0, in.seed, in.number.integer,
        std::bit_cast<std::int64_t>(in.number.real));
    for (const std::int16_t input : in.inputs) add(input);
  }
  return code;
}

std::string to_string(const Group& group) {
  constexpr const char* kinds[] = {"elementwise", "row", "column"};
  std::string text =
      fmt::format("{} {} split {}\n", kinds[static_cast<int>(group.kind)], russet::to_string(group.space), group.split);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    const Instruction& in = group.code[i];
    constexpr const char* extents[] = {"full", "reduced", "column"};
    constexpr const char* names[] = {"load", "store", "index", "scalar", "constant", "compute", "random", "reduce"};
    text += fmt::format("  v{} = {}{} {} {}", i, names[static_cast<int>(in.kind)],
                        in.op == ops::Op::leaf ? "" : fmt::format(" {}", ops::row(in.op).name), name_of(in.dtype),
                        extents[static_cast<int>(in.extent)]);
    for (const std::int16_t input : in.inputs) {
      if (input >= 0) text += fmt::format(" v{}", input);
    }
    if (in.kind == Instruction::Kind::constant) text += fmt::format(" {}/{}", in.number.real, in.number.integer);
    if (in.access >= 0) {
      const Access& access = group.accesses[static_cast<std::size_t>(in.access)];
      text += fmt::format(" slot {} + {} {}{}", access.slot, access.offset, russet::to_string(access.strides),
                          access.packed ? " packed" : "");
    }
    text += '\n';
  }
  return text;
}

}  // namespace russet::compile
