#pragma once
// Runs single primitives on a compile::Target, on values that the test states.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compile/step.h"
#include "ops/table.h"

namespace russet::testing {

/// An array as a test writes it; values are rounded to `dtype` when they are stored.
struct Values {
  DType dtype;
  Shape shape;
  std::vector<double> values;
  Strides strides{};        // contiguous if empty
  std::int64_t offset = 0;  // elements before the first
};

inline Values floats(const Shape& shape, std::vector<double> values) {
  return {DType::float32, shape, std::move(values)};
}
inline Values longs(const Shape& shape, std::vector<double> values) { return {DType::int64, shape, std::move(values)}; }

class PrimitiveRunner {
 public:
  explicit PrimitiveRunner(const compile::Target& target) : target_(target) {}

  /// Runs `op`; the result's type and shape come from the operator table, with `given` where the rules need it.
  /// `argument` is the run-time argument's bits.
  Values operator()(ops::Op op, const std::vector<Values>& inputs, const ops::Attributes& attributes = {},
                    const ops::Description& given = {DType::float32, {}}, std::uint64_t argument = 0) const {
    std::vector<ops::Description> descriptions;
    for (const Values& input : inputs) descriptions.push_back({input.dtype, input.shape});
    std::vector<const ops::Description*> pointers;
    for (const ops::Description& description : descriptions) pointers.push_back(&description);
    return as(ops::infer(op, pointers, attributes, given), op, inputs, attributes, argument);
  }

  /// The same for a result that the test describes: steps may take what the table's rules do not (factors of a product
  /// whose numbers of axes differ).
  Values as(const ops::Description& result, ops::Op op, const std::vector<Values>& inputs,
            const ops::Attributes& attributes = {}, std::uint64_t argument = 0) const {
    compile::Primitive step;
    step.op = op;
    step.attributes = attributes;
    step.argument = ops::row(op).has_argument ? 0 : -1;
    const bool elementwise = ops::row(op).family == ops::Family::elementwise;
    std::vector<std::vector<std::byte>> memory;
    for (const Values& input : inputs) {
      step.inputs.push_back(operand(static_cast<std::int32_t>(memory.size()), input));
      if (elementwise) expand(step.inputs.back(), result.shape);
      memory.push_back(stored(input));
    }
    step.output = operand(static_cast<std::int32_t>(memory.size()), {result.dtype, result.shape, {}});
    memory.emplace_back(static_cast<std::size_t>(numel(result.shape)) * size_of(result.dtype), std::byte{0xa5});

    std::vector<std::byte*> slots;
    for (auto& block : memory) slots.push_back(block.data());
    const std::unique_ptr<compile::Kernel> kernel = target_.compile(step);
    std::vector<std::byte> scratch(kernel->scratch_bytes());
    kernel->run({slots.data(), &argument, scratch.data()});
    return {result.dtype, result.shape, loaded(memory.back(), result)};
  }

 private:
  static compile::Operand operand(std::int32_t slot, const Values& array) {
    const Strides strides = array.strides.empty() ? contiguous_strides(array.shape) : array.strides;
    return {{slot, array.dtype, array.offset, -1, strides}, array.shape};
  }

  // As the compiler describes elementwise operands: strides of the result's rank, 0 where an element repeats.
  static void expand(compile::Operand& operand, const Shape& sizes) {
    Strides strides = Strides::filled(sizes.rank(), 0);
    const int missing = sizes.rank() - operand.sizes.rank();
    for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
      if (operand.sizes[axis] != 1) strides[missing + axis] = operand.access.strides[axis];
    }
    operand.access.strides = strides;
  }

  static std::vector<std::byte> stored(const Values& array) {
    std::vector<std::byte> bytes;
    visit_dtype(array.dtype, [&]<class Element>() {
      for (const double value : array.values) {
        const auto element = convert_element<Element>(value);
        const auto* begin = reinterpret_cast<const std::byte*>(&element);
        bytes.insert(bytes.end(), begin, begin + sizeof(Element));
      }
    });
    return bytes;
  }

  static std::vector<double> loaded(const std::vector<std::byte>& bytes, const ops::Description& description) {
    std::vector<double> values;
    visit_dtype(description.dtype, [&]<class Element>() {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
        Element element;
        std::memcpy(&element, bytes.data() + at, sizeof(Element));
        values.push_back(convert_element<double>(element));
      }
    });
    return values;
  }

  const compile::Target& target_;
};

}  // namespace russet::testing
