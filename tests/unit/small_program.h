#pragma once
// Programs as tests write them, value by value, and what they compute by the reference device.
#include "compile/program.h"
#include "device/reference/target.h"
#include "unit/primitive_runner.h"

namespace russet::testing {

class SmallProgram {
 public:
  compile::ValueId leaf(DType dtype, const Shape& shape) {
    const compile::ValueId id = add(ops::Op::leaf, dtype, shape, {});
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  }

  compile::ValueId add(ops::Op op, DType dtype, const Shape& shape, compile::Inputs inputs,
                       ops::Attributes attributes = {}) {
    program.values.push_back({{{dtype, shape}, op, std::move(attributes)}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  }

  void output(compile::ValueId id) { program.outputs.push_back({id, -1}); }

  compile::Program program;
};

/// The outputs, computed one value after the other. Memory without values holds 77.
inline std::vector<Values> evaluate(const compile::Program& program, const std::vector<Values>& leaves) {
  const PrimitiveRunner run(reference::target());
  std::vector<Values> values;
  for (const compile::Value& value : program.values) {
    if (value.leaf >= 0) {
      values.push_back(leaves[static_cast<std::size_t>(value.leaf)]);
      continue;
    }
    std::vector<Values> inputs;
    for (const compile::ValueId input : value.inputs) {
      if (input >= 0) inputs.push_back(values[static_cast<std::size_t>(input)]);
    }
    if (value.op == ops::Op::empty) {
      values.push_back(
          {value.dtype, value.shape, std::vector<double>(static_cast<std::size_t>(numel(value.shape)), 77)});
    } else {
      values.push_back(run.as({value.dtype, value.shape}, value.op, inputs, value.attributes));
    }
  }
  std::vector<Values> outputs;
  for (const compile::Output& output : program.outputs)
    outputs.push_back(values[static_cast<std::size_t>(output.value)]);
  return outputs;
}

/// Small integers, so that sums are exact in any order.
inline Values integers(DType dtype, const Shape& shape, int seed) {
  Values result{dtype, shape, {}};
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    result.values.push_back(static_cast<double>((i * 7 + seed * 13) % 11 - 5));
  }
  return result;
}

}  // namespace russet::testing
