#pragma once
// The three gradients of an attention by one kernel: given the attention's result, of which it makes deltas, against
// the same by deltas; sums of their columns against what they are sums of; bits of what dropout keeps against random
// numbers.
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
  enum Slot : std::int32_t {
    query,
    key,
    value,
    gradient,
    logsumexp,
    delta,
    result,
    of_key,
    of_value,
    of_query,
    key_sums,
    value_sums,
    query_sums,
    bits
  };

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
    for (const std::int64_t columns : {s.width, s.values, s.width}) {
      add({s.batch, 1, columns}, false, DType::float32);
    }
    add({s.batch, (s.columns + 63) / 64 * 4, (s.rows + 1) / 2 * 2}, false, DType::int16);
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
    step.companions = {{.op = Op::attention_value_gradient, .output = operands_[of_value]},
                       {.op = Op::attention_query_gradient, .output = operands_[of_query]}};
    return step;
  }

  Primitive with_sums(bool of_result) const {
    Primitive sums = step(of_result);
    sums.companions.push_back({Op::attention_key_gradient, operands_[key_sums], true});
    sums.companions.push_back({Op::attention_value_gradient, operands_[value_sums], true});
    sums.companions.push_back({Op::attention_query_gradient, operands_[query_sums], true});
    return sums;
  }

  /// The attention, with dropout. Its random numbers begin at argument 0.
  Primitive attention(bool stores_bits) const {
    Primitive forward;
    forward.op = Op::attention;
    forward.attributes = dropout;
    forward.inputs = {operands_[query], operands_[key], operands_[value], drawn()};
    forward.output = operands_[result];
    forward.companions = {{.op = Op::attention_logsumexp, .output = operands_[logsumexp]}};
    if (stores_bits) forward.companions.push_back({.op = Op::uniform, .output = operands_[bits]});
    return forward;
  }
  Primitive with_dropout(bool reads_bits) const {
    Primitive backward = step(true);
    backward.attributes = dropout;
    backward.inputs.push_back(reads_bits ? operands_[bits] : drawn());
    return backward;
  }

  const Shape& sizes(Slot slot) const { return operands_[slot].sizes; }

  std::vector<double> numbers(Slot slot) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < numel(operands_[slot].sizes); ++i) all.push_back(number(slot, i));
    return all;
  }

  /// Makes all scores so small that what is not there, with a score of 0, would count for infinity.
  void make_scores_small() {
    const double far = -256;
    const auto& width = static_cast<double>(operands_[query].sizes[2]);
    fill(query, 1 / 0.125 / width);
    fill(key, far);
    fill(logsumexp, far + std::log(static_cast<double>(operands_[key].sizes[1])));
  }

  Memory memory;

 private:
  void fill(Slot slot, double x) {
    const DType type = operands_[slot].access.dtype;
    for (std::int64_t i = 0; i < numel(operands_[slot].sizes); ++i) {
      store_number(type, {x, 0}, memory.slot(slot) + i * static_cast<std::int64_t>(size_of(type)));
    }
  }
  static constexpr ops::Attention dropout{.scale = 0.125, .dropout = 0.3, .seed = 5};

  Operand drawn() const {
    const Shape& rows = operands_[query].sizes;
    const Shape scores{rows[0], rows[1], operands_[key].sizes[1]};
    return {{-1, DType::float32, 0, 0, contiguous_strides(scores)}, scores};
  }
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

inline void run_at_once(AttentionGradients& gradients, const Primitive& step) {
  MutantsDriver driver;
  driver.adjust = [](gpu::Properties& properties) { properties.has_fragments = true; };
  const auto kernel = driver.target().compile(step);
  EXPECT_EQ(kernel->name().find("fragments "), 0U) << kernel->name();
  run_on(driver, *kernel, gradients.memory, {17});
}

inline void expect_deltas_of_result(DType type, const AttentionSizes& sizes, bool apart) {
  AttentionGradients by_delta(type, sizes, apart);
  AttentionGradients by_result = by_delta;
  run_at_once(by_delta, by_delta.step(false));
  run_at_once(by_result, by_result.step(true));
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

/// What is not there counts for nothing: each key has the same share.
inline void expect_keys_that_are_there(DType type, const AttentionSizes& sizes) {
  AttentionGradients gradients(type, sizes, false);
  gradients.make_scores_small();
  run_at_once(gradients, gradients.step(true));
  for (const double x : gradients.numbers(AttentionGradients::of_query)) ASSERT_TRUE(std::isfinite(x));
}

/// Sums are of what is not rounded yet: each element may be half a unit of the last place off.
inline void expect_sums(DType type, const AttentionSizes& sizes, bool of_result) {
  AttentionGradients gradients(type, sizes, false);
  run_at_once(gradients, gradients.with_sums(of_result));
  using Slot = AttentionGradients::Slot;
  const std::pair<Slot, Slot> pairs[] = {
      {Slot::of_key, Slot::key_sums}, {Slot::of_value, Slot::value_sums}, {Slot::of_query, Slot::query_sums}};
  const double unit = type == DType::bfloat16 ? 0x1p-9 : 0x1p-12;
  for (const auto& [whole, sums] : pairs) {
    const std::vector<double> all = gradients.numbers(whole);
    const std::vector<double> got = gradients.numbers(sums);
    const std::int64_t rows = gradients.sizes(whole)[1];
    const std::int64_t columns = gradients.sizes(whole)[2];
    ASSERT_EQ(static_cast<std::int64_t>(got.size()), sizes.batch * columns);
    for (std::int64_t i = 0; i < sizes.batch * columns; ++i) {
      double sum = 0;
      double magnitude = 1e-6;
      for (std::int64_t row = 0; row < rows; ++row) {
        const double x = all[static_cast<std::size_t>((i / columns * rows + row) * columns + i % columns)];
        sum += x;
        magnitude += std::abs(x);
      }
      ASSERT_NEAR(got[static_cast<std::size_t>(i)], sum, magnitude * unit)
          << name_of(type) << " slot " << sums << " element " << i;
    }
  }
}

/// Numbers that are drawn twice and bits that are stored keep the same.
inline void expect_bits_of_dropout(DType type, const AttentionSizes& sizes) {
  using Slot = AttentionGradients::Slot;
  AttentionGradients by_numbers(type, sizes, false);
  AttentionGradients by_bits = by_numbers;
  for (const bool stored : {false, true}) {
    AttentionGradients& gradients = stored ? by_bits : by_numbers;
    run_at_once(gradients, gradients.attention(stored));
    run_at_once(gradients, gradients.with_dropout(stored));
  }
  for (const Slot slot : {Slot::result, Slot::of_key, Slot::of_value, Slot::of_query}) {
    EXPECT_EQ(by_bits.numbers(slot), by_numbers.numbers(slot)) << name_of(type) << " slot " << slot;
  }
}

}  // namespace russet::test
