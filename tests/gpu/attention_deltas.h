#pragma once
// The three gradients of an attention by a kernel that is given the attention's result, and makes deltas of it, against
// the same by deltas.
#include <russet/dtype.h>

#include <cmath>

#include "mutants_driver.h"
#include "ops/attention.h"
#include "run_group.h"

namespace russet::test {

using compile::Operand;
using compile::Primitive;

struct AttentionSizes {
  std::int64_t batch, rows, columns, width, values;
};

/// The gradients of an attention, whose slots are known by what they hold.
class AttentionGradients {
 public:
  enum Slot : std::int32_t { query, key, value, gradient, logsumexp, delta, result, of_key, of_value, of_query };

  /// `apart`: rows of the result and its gradient lie among those of other heads.
  AttentionGradients(DType type, const AttentionSizes& s, bool apart) : type_(type) {
    add({s.batch, s.rows, s.width});
    add({s.batch, s.columns, s.width});
    add({s.batch, s.columns, s.values});
    add({s.batch, s.rows, s.values}, apart);
    add({s.batch, s.rows, 1}, false, DType::float32);
    add({s.batch, s.rows, 1}, false, DType::float32);
    add({s.batch, s.rows, s.values}, apart);
    add({s.batch, s.columns, s.width});
    add({s.batch, s.columns, s.values});
    add({s.batch, s.rows, s.width});
    for (std::int64_t row = 0; row < s.batch * s.rows; ++row) {
      double sum = 0;
      for (std::int64_t column = 0; column < s.values; ++column) {
        const std::int64_t at = place(operands_[result], row, column);
        sum += number(result, at) * number(gradient, at);
      }
      const auto single = static_cast<float>(sum);
      std::memcpy(memory.slot(delta) + row * 4, &single, 4);
    }
  }

  Primitive step(bool of_result) const {
    Primitive step;
    step.op = Op::attention_key_gradient;
    step.attributes = ops::Attention{.scale = 0.125};
    for (const Slot slot : {query, key, value, gradient, logsumexp}) step.inputs.push_back(operands_[slot]);
    step.inputs.push_back(operands_[of_result ? result : delta]);
    step.output = operands_[of_key];
    step.companions = {{Op::attention_value_gradient, operands_[of_value]},
                       {Op::attention_query_gradient, operands_[of_query]}};
    return step;
  }

  std::vector<double> numbers(Slot slot) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < numel(operands_[slot].sizes); ++i) all.push_back(number(slot, i));
    return all;
  }

  Memory memory;

 private:
  void add(const Shape& sizes, bool apart = false, std::optional<DType> type = {}) {
    const DType own = type.value_or(type_);
    const auto slot = memory.add(static_cast<std::size_t>(numel(sizes)) * size_of(own));
    // [rows, batch, columns] in memory
    const Strides strides =
        apart ? Strides{sizes[2], sizes[0] * sizes[2], 1} : Strides{sizes[1] * sizes[2], sizes[2], 1};
    operands_.push_back({{slot, own, 0, -1, strides}, sizes});
    for (std::int64_t i = 0; i < numel(sizes); ++i) {
      const double x = static_cast<double>((i * 7919 + slot * 31) % 211 - 100) / 100 + (slot == logsumexp ? 4 : 0);
      store_number(own, {x, 0}, memory.slot(slot) + i * static_cast<std::int64_t>(size_of(own)));
    }
  }
  double number(int slot, std::int64_t at) {
    const DType type = operands_[static_cast<std::size_t>(slot)].access.dtype;
    return load_number(type, memory.slot(slot) + at * static_cast<std::int64_t>(size_of(type))).real;
  }
  static std::int64_t place(const Operand& operand, std::int64_t row, std::int64_t column) {
    const Strides& strides = operand.access.strides;
    const std::int64_t rows = operand.sizes[1];
    return row / rows * strides[0] + row % rows * strides[1] + column * strides[2];
  }

  DType type_;
  std::vector<Operand> operands_;
};

inline void expect_deltas_of_result(DType type, const AttentionSizes& sizes, bool apart) {
  MutantsDriver driver;
  driver.adjust = [](gpu::Properties& properties) { properties.has_fragments = true; };
  AttentionGradients by_delta(type, sizes, apart);
  AttentionGradients by_result = by_delta;
  const auto run = [&](AttentionGradients& gradients, bool of_result) {
    const auto kernel = driver.target().compile(gradients.step(of_result));
    EXPECT_EQ(kernel->name().find("fragments at once"), 0U) << kernel->name();
    run_on(driver, *kernel, gradients.memory, {});
  };
  run(by_delta, false);
  run(by_result, true);
  for (const AttentionGradients::Slot slot :
       {AttentionGradients::of_key, AttentionGradients::of_value, AttentionGradients::of_query}) {
    const std::vector<double> wanted = by_delta.numbers(slot);
    const std::vector<double> got = by_result.numbers(slot);
    double largest = 0;
    for (const double x : wanted) largest = std::max(largest, std::abs(x));
    EXPECT_GT(largest, 0.02);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Sums in another order may be rounded to a neighbour.
      ASSERT_NEAR(got[i], wanted[i], largest * 0.008) << name_of(type) << " slot " << slot << " element " << i;
    }
  }
}

}  // namespace russet::test
