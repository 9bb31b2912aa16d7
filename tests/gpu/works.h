#pragma once
// Steps of every kind that may share a launch.
#include "run_group.h"

namespace russet::test {

/// Works over slots of one memory.
class Works {
 public:
  int slot(std::int64_t elements, bool filled) {
    const int number = memory.add(static_cast<std::size_t>(elements) * 4);
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements; ++i) {
      values.push_back(filled ? static_cast<float>((i * 7919 + number) % 211 - 100) / 64 : 0);
    }
    write(memory, number, values);
    return number;
  }

  void elementwise(std::int64_t rows, std::int64_t columns, std::int64_t row_stride) {
    const int x = slot(rows * row_stride, true);
    const int y = slot(rows * columns, false);
    Builder b(Group::Kind::elementwise, {rows, columns}, 2);
    const auto value = b.load(x, DType::float32, {row_stride, 1});
    b.store(b.compute(Op::exp, DType::float32, b.compute(Op::mul, DType::float32, value, value)), y, {columns, 1});
    list.emplace_back(b.group);
  }

  void elementwise(Op op, std::int64_t rows, std::int64_t columns) {
    const int x = slot(rows * columns, true);
    const int y = slot(rows * columns, false);
    Builder b(Group::Kind::elementwise, {rows, columns}, 2);
    b.store(b.compute(op, DType::float32, b.load(x, DType::float32, {columns, 1})), y, {columns, 1});
    list.emplace_back(b.group);
  }

  /// The sum of so many tensors, times run-time argument 0.
  void scaled_sum(int count, std::int64_t elements) {
    Builder b(Group::Kind::elementwise, {elements}, 1);
    auto sum = b.load(slot(elements, true), DType::float32, {1});
    for (int i = 1; i < count; ++i) {
      sum = b.compute(Op::add, DType::float32, sum, b.load(slot(elements, true), DType::float32, {1}));
    }
    const auto factor = b.push({.kind = Kind::scalar, .dtype = DType::float32, .argument = 0});
    b.store(b.compute(Op::mul, DType::float32, sum, factor), slot(elements, false), {1});
    list.emplace_back(b.group);
  }

  void column(std::int64_t rows, std::int64_t columns) {
    const int x = slot(rows * columns, true);
    const int y = slot(columns, false);
    Builder b(Group::Kind::column, {rows, columns}, 1);
    const auto sum = b.reduce(Op::sum, DType::float32, b.load(x, DType::float32, {columns, 1}));
    b.store(sum, y, {0, 1}, Extent::reduced);
    list.emplace_back(b.group);
  }

  void row(std::int64_t rows, std::int64_t columns) {
    const int x = slot(rows * columns, true);
    const int y = slot(rows * columns, false);
    Builder b(Group::Kind::row, {rows, columns}, 1);
    const auto value = b.load(x, DType::float32, {columns, 1});
    const auto largest = b.reduce(Op::amax, DType::float32, value);
    b.store(b.compute(Op::sub, DType::float32, value, largest), y, {columns, 1});
    list.emplace_back(b.group);
  }

  /// The second launch of column sums.
  void results(MachineDriver& driver, std::int64_t rows, std::int64_t columns) {
    column(rows, columns);
    compile::Stage stage;
    stage.whole = std::get<Group>(list.back());
    stage.number = 1;
    const auto bytes = driver.target().stages(std::get<Group>(list.back()))->parts_bytes;
    stage.parts = slot(static_cast<std::int64_t>(bytes) / 4, true);
    list.back() = stage;
  }

  /// [rows, depth] x [depth, columns], each factor as it lies or transposed.
  void product(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool left_turned, bool right_turned) {
    compile::Primitive p;
    p.op = Op::matmul;
    const auto operand = [&](std::int64_t lines, std::int64_t length, bool turned, bool filled) {
      const Strides strides = turned ? Strides{1, lines} : Strides{length, 1};
      return compile::Operand{{slot(lines * length, filled), DType::float32, 0, -1, strides}, {lines, length}};
    };
    p.inputs = {operand(rows, depth, left_turned, true), operand(depth, columns, right_turned, true)};
    p.output = operand(rows, columns, false, false);
    list.emplace_back(std::move(p));
  }

  Memory memory;
  std::vector<compile::Step> list;
};

inline std::vector<std::byte> bytes_of(Memory& memory) {
  std::vector<std::byte> all;
  const auto slots = memory.pointers();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    all.insert(all.end(), slots[i], slots[i] + memory.bytes(static_cast<int>(i)));
  }
  return all;
}

}  // namespace russet::test
