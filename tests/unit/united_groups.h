#pragma once
// Random pairs of a row group and a column group over the same elements, as gradients of layer norms have them.
#include <random>

#include "compile/passes/united_group.h"
#include "group_builder.h"

namespace russet::test {

/// Numbers are small integers, so sums are exact in any order.
struct GroupPair {
  Builder rows, columns;  // over the memory of `rows`
  bool rows_first = true;

  const Group& first() const { return rows_first ? rows.group : columns.group; }
  const Group& second() const { return rows_first ? columns.group : rows.group; }
  Builder united() const {
    Builder b = rows;
    b.group = *compile::passes::united_group(first(), second());
    return b;
  }
};

class PairMaker {
 public:
  explicit PairMaker(unsigned seed) : random_(seed) {}

  /// Over [outer * inner, columns].
  GroupPair make(std::int64_t outer, std::int64_t inner, std::int64_t columns) {
    const std::int64_t rows = outer * inner;
    GroupPair pair{Builder(Group::Kind::row, {rows, columns}, 1),
                   Builder(Group::Kind::column, {outer, inner, columns}, 2), pick(2) == 0};
    // Half of the time it is the row group that has the axis in two.
    if (pick(2) == 0) {
      pair.rows.group.space = {outer, inner, columns};
      pair.rows.group.split = 2;
      pair.columns.group.space = {rows, columns};
      pair.columns.group.split = 1;
    }
    memory_ = &pair.rows.memory;
    elements_ = rows * columns;
    columns_ = columns;
    const DType type = pick(2) == 0 ? DType::bfloat16 : DType::float32;
    const int g = slot(type, elements_);
    const int x = slot(DType::float32, elements_);
    const int given = slot(DType::float32, elements_);  // what the first stores for the second to load
    if (pair.rows_first) {
      add_rows(pair.rows, type, g, x, given);
      add_columns(pair.columns, type, g, x, pick(3) == 0 ? -1 : given);
    } else {
      const bool gives = pick(2) == 0;
      add_columns(pair.columns, type, g, x, -1);
      if (gives) {
        pair.columns.store(full(pair.columns, g, type, x), given, along(pair.columns, true));
      }
      add_rows(pair.rows, gives ? DType::float32 : type, gives ? given : g, x, slot(DType::float32, elements_));
    }
    return pair;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  int slot(DType type, std::int64_t elements) {
    const int number = memory_->add(static_cast<std::size_t>(elements) * size_of(type));
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::int64_t value = pick(5) - 2;
      store_number(type, {static_cast<double>(value), value},
                   memory_->slot(number) + i * static_cast<std::int64_t>(size_of(type)));
    }
    return number;
  }

  /// Strides of all elements, or of one for each column.
  Strides along(const Builder& b, bool all) const {
    Strides strides = contiguous_strides(b.group.space);
    for (int axis = 0; !all && axis + 1 < strides.rank(); ++axis) strides[axis] = 0;
    return strides;
  }

  static std::int16_t capped(Builder& b, std::int16_t value, double most) {
    const std::int16_t low = b.compute(Op::minimum, DType::float32, value, b.constant(DType::float32, most, 0));
    return b.compute(Op::maximum, DType::float32, low, b.constant(DType::float32, -most, 0));
  }

  /// g * x of each element.
  std::int16_t full(Builder& b, int g, DType type, int x) const {
    std::int16_t value = b.load(g, type, along(b, true));
    if (type != DType::float32) value = b.compute(Op::cast, DType::float32, value);
    return b.compute(Op::mul, DType::float32, value, b.load(x, DType::float32, along(b, true)));
  }

  void add_rows(Builder& b, DType type, int g, int x, int result) {
    std::int16_t value = full(b, g, type, x);
    if (pick(2) == 0) {
      const std::int16_t weight = b.load(slot(DType::float32, columns_), DType::float32, along(b, false));
      value = b.compute(Op::mul, DType::float32, value, weight);
    }
    for (int i = pick(2); i >= 0; --i) {
      const std::int16_t sum = b.reduce(pick(3) == 0 ? Op::amax : Op::sum, DType::float32, value);
      value = capped(b, b.compute(Op::sub, DType::float32, value, sum), 9);
      if (pick(3) == 0) {
        Strides strides = contiguous_strides(b.group.space);
        for (std::int64_t& stride : strides) stride /= columns_;
        const int rows = slot(DType::float32, elements_ / columns_);
        b.store(sum, rows, strides, Extent::reduced);
      }
    }
    b.store(value, result, along(b, true));
  }

  /// `given`: a slot of elements that it adds up, too, or -1.
  void add_columns(Builder& b, DType type, int g, int x, int given) {
    std::vector<std::int16_t> sums{b.reduce(Op::sum, DType::float32, full(b, g, type, x))};
    if (given >= 0) {
      sums.push_back(b.reduce(Op::sum, DType::float32, b.load(given, DType::float32, along(b, true))));
    }
    for (const std::int16_t sum : sums) {
      std::int16_t value = sum;
      if (pick(2) == 0) {
        const std::int16_t before =
            b.load(slot(DType::float32, columns_), DType::float32, along(b, false), Extent::reduced);
        value = b.compute(Op::add, DType::float32, before, sum, -1, Extent::reduced);
      }
      b.store(value, slot(DType::float32, columns_), along(b, false), Extent::reduced);
    }
  }

  std::mt19937 random_;
  Memory* memory_ = nullptr;
  std::int64_t elements_ = 0, columns_ = 0;
};

}  // namespace russet::test
