#pragma once
// Random groups, whose results are exact, for tests of what runs groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "group_builder.h"
#include "ops/table.h"

namespace russet::test {

/// Random groups over all kinds, layouts, types and exact operators. Numbers are small integers, so sums are exact in
/// any order and results must be equal bit for bit, guards included.
class Fuzzer {
 public:
  /// `doubles`: whether float64 is among the types.
  explicit Fuzzer(unsigned seed, bool doubles = true) : random_(seed), doubles_(doubles) {}

  Builder make() {
    const auto kind = static_cast<Group::Kind>(pick(3));
    Shape space;
    const int rank = 1 + pick(4);
    std::int64_t left = pick(8) == 0 ? 200000 : 8000;
    for (int axis = 0; axis < rank; ++axis) {
      constexpr std::int64_t sizes[] = {1, 2, 3, 5, 7, 10, 16, 17, 33, 64, 100, 129, 500, 1000, 2048, 5000, 20000};
      std::int64_t size = sizes[pick(17)];
      while (size > left) size = sizes[pick(12)] > left ? 1 : std::min<std::int64_t>(left, sizes[pick(12)]);
      if (pick(60) == 0) size = 0;
      left /= std::max<std::int64_t>(size, 1);
      space.push_back(size);
    }
    const int split = kind == Group::Kind::elementwise ? rank : pick(rank + 1);
    Builder b(kind, space, split);
    b.arguments = {std::bit_cast<std::uint64_t>(3.0), 2, 1, 17};
    add_inputs(b, 1 + pick(3));
    for (int i = pick(7); i > 0; --i) add_operation(b, Extent::full);
    if (kind != Group::Kind::elementwise) {
      for (int i = 1 + pick(2); i > 0; --i) add_reduction(b);
      for (int i = pick(4); i > 0; --i) add_operation(b, Extent::reduced);
      add_store(b, last(b, Extent::reduced), Extent::reduced);
      if (kind == Group::Kind::row && pick(2) == 0) {
        for (int i = 1 + pick(3); i > 0; --i) add_operation(b, Extent::full);
        add_store(b, last(b, Extent::full), Extent::full);
      } else if (pick(4) == 0) {
        add_store(b, first_full_, Extent::full);
      }
    } else {
      add_store(b, static_cast<std::int16_t>(b.group.code.size() - 1), Extent::full);
      if (pick(3) == 0) add_store(b, any(b, Extent::full), Extent::full);
    }
    return b;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  static constexpr DType types[] = {DType::float32, DType::float32, DType::bfloat16, DType::float16,
                                    DType::float64, DType::int32,   DType::int64,    DType::int8,
                                    DType::uint8,   DType::int16,   DType::boolean};

  DType any_type() {
    const DType type = types[pick(11)];
    return type == DType::float64 && !doubles_ ? DType::float32 : type;
  }

  static bool is_reduced_axis(const Group& group, int axis) {
    if (group.kind == Group::Kind::elementwise) return false;
    return (axis >= group.split) == (group.kind == Group::Kind::row);
  }

  /// An access with a slot of its own: permuted, gapped, mirrored; broadcast for loads.
  std::int16_t new_access(Builder& b, DType type, bool may_broadcast, Extent extent) {
    Access access;
    access.dtype = type;
    const int rank = b.group.space.rank();
    std::vector<int> order;
    for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
    if (pick(2) == 0) std::shuffle(order.begin(), order.end(), random_);
    access.strides = Strides::filled(rank, 0);
    std::int64_t stride = pick(8) == 0 ? 2 : 1;
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (const int axis : order) {
      if (extent == Extent::reduced && is_reduced_axis(b.group, axis)) continue;
      if (may_broadcast && pick(5) == 0) continue;
      const std::int64_t size = std::max<std::int64_t>(b.group.space[axis], 1);
      access.strides[axis] = pick(12) == 0 ? -stride : stride;
      (access.strides[axis] < 0 ? low : high) += access.strides[axis] * (size - 1);
      stride *= size + (pick(6) == 0 ? pick(4) : 0);
    }
    access.offset = -low + pick(4);
    if (pick(4) == 0) access.offset_argument = 1 + pick(2);
    const std::int64_t elements = access.offset + high + 4;
    access.slot = b.memory.add(static_cast<std::size_t>(elements) * size_of(type));
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::int64_t value = type == DType::boolean ? pick(2) : type == DType::uint8 ? pick(6) : pick(9) - 4;
      store_number(type, {static_cast<double>(value), value},
                   b.memory.slot(access.slot) + i * static_cast<std::int64_t>(size_of(type)));
    }
    return b.access(std::move(access));
  }

  void add_inputs(Builder& b, int count) {
    for (int i = 0; i < count; ++i) {
      const DType type = any_type();
      const Extent extent =
          i > 0 && b.group.kind != Group::Kind::elementwise && pick(4) == 0 ? Extent::reduced : Extent::full;
      b.push({.kind = Kind::load, .dtype = type, .extent = extent, .access = new_access(b, type, true, extent)});
    }
    first_full_ = 0;
    if (pick(4) == 0) b.push({.kind = Kind::scalar, .dtype = DType::float32, .argument = 0});
    if (pick(4) == 0) b.push({.kind = Kind::scalar, .dtype = DType::int16, .argument = 1});
    if (pick(4) == 0) b.constant(any_type(), 2, 1);
    if (pick(5) == 0) {
      const auto access = new_access(b, DType::int64, true, Extent::full);
      const auto at = b.push({.kind = Kind::index, .dtype = DType::int64, .access = access});
      const auto bits = b.push({.kind = Kind::random,
                                .op = pick(2) == 0 ? Op::uniform : Op::random_bits,
                                .inputs = {at, -1, -1},
                                .argument = 3,
                                .seed = 12345678901234ULL});
      auto& random = b.group.code[static_cast<std::size_t>(bits)];
      random.dtype = random.op == Op::uniform ? DType::float32 : DType::int64;
      if (random.op == Op::uniform) {  // whole numbers again
        const auto four = b.constant(DType::float32, 4, 4);
        b.compute(Op::floor, DType::float32, b.compute(Op::mul, DType::float32, bits, four));
      } else {
        const auto seven = b.constant(DType::int64, 7, 7);
        b.compute(Op::bitwise_and, DType::int64, bits, seven);
      }
    }
  }

  /// Any value that an instruction of this extent may read.
  std::int16_t any(Builder& b, Extent extent) {
    for (;;) {
      const int i = pick(static_cast<int>(b.group.code.size()));
      const Instruction& instruction = b.group.code[static_cast<std::size_t>(i)];
      if (instruction.kind == Kind::store || instruction.op == Op::random_bits || instruction.op == Op::uniform)
        continue;
      // Fractions would make sums depend on their order.
      const std::int16_t source = instruction.inputs[0];
      if (source >= 0 && b.group.code[static_cast<std::size_t>(source)].op == Op::uniform) continue;
      const bool uniform = instruction.kind == Kind::constant || instruction.kind == Kind::scalar;
      if (extent == Extent::reduced && instruction.extent == Extent::full && !uniform) continue;
      return static_cast<std::int16_t>(i);
    }
  }
  std::int16_t last(Builder& b, Extent extent) {
    for (std::size_t i = b.group.code.size(); i-- > 0;) {
      const Instruction& instruction = b.group.code[i];
      if (instruction.kind != Kind::store && instruction.extent == extent) return static_cast<std::int16_t>(i);
    }
    return 0;
  }
  DType type_of(const Builder& b, std::int16_t id) const { return b.group.code[static_cast<std::size_t>(id)].dtype; }

  std::int16_t as(Builder& b, std::int16_t value, DType type, Extent extent) {
    if (type_of(b, value) == type) return value;
    return b.compute(Op::cast, type, value, -1, -1, extent);
  }

  void add_operation(Builder& b, Extent extent) {
    const std::int16_t a = any(b, extent);
    const std::int16_t other = any(b, extent);
    const DType type = type_of(b, a);
    const bool boolean = type == DType::boolean;
    switch (pick(10)) {
      case 0: as(b, a, any_type(), extent); return;
      case 1: {
        constexpr Op comparisons[] = {Op::eq, Op::ne, Op::lt, Op::le};
        const auto right = as(b, other, type, extent);
        b.compute(comparisons[pick(4)], DType::boolean, a, right, -1, extent);
        return;
      }
      case 2: {
        const auto condition = as(b, any(b, extent), DType::boolean, extent);
        const auto right = as(b, other, type, extent);
        b.compute(Op::where, type, condition, a, right, extent);
        return;
      }
      case 3: {
        constexpr Op unary[] = {Op::neg, Op::abs, Op::sign, Op::floor};
        if (!boolean) {
          b.compute(unary[pick(4)], type, a, -1, -1, extent);
        } else {
          b.compute(Op::bitwise_not, type, a, -1, -1, extent);
        }
        return;
      }
      case 4:
        if (!is_floating(type)) {
          constexpr Op integral[] = {Op::bitwise_and, Op::bitwise_or, Op::bitwise_xor, Op::floor_divide, Op::fmod};
          const Op op = integral[pick(boolean ? 3 : 5)];
          auto right = as(b, other, type, extent);
          const bool divides = op == Op::floor_divide || op == Op::fmod;
          if (divides) right = b.compute(Op::bitwise_or, type, right, b.constant(type, 0, 1), -1, extent);  // not by 0
          b.compute(op, type, a, right, -1, extent);
          return;
        }
        [[fallthrough]];
      default: {
        constexpr Op binary[] = {Op::add, Op::mul, Op::maximum, Op::minimum, Op::sub};
        const auto right = as(b, other, type, extent);
        const auto result = b.compute(binary[pick(boolean ? 4 : 5)], type, a, right, -1, extent);
        // Keeps numbers small.
        if (is_floating(type)) {
          const auto sixteen = b.constant(type, 16, 16);
          const auto capped = b.compute(Op::minimum, type, result, sixteen, -1, extent);
          const auto low = b.constant(type, -16, -16);
          b.compute(Op::maximum, type, capped, low, -1, extent);
        }
      }
    }
  }

  void add_reduction(Builder& b) {
    std::int16_t value = any(b, Extent::full);
    if (b.group.code[static_cast<std::size_t>(value)].extent == Extent::reduced) value = first_full_;
    if (after_reduction(b, value)) value = first_full_;
    const bool empty = numel(b.group.space) == 0;
    constexpr Op reductions[] = {Op::sum, Op::sum, Op::amax, Op::amin, Op::argmax, Op::argmin};
    const Op op = reductions[empty ? 0 : pick(6)];
    const DType type = type_of(b, value);
    DType result = type;
    if (op == Op::sum && !is_floating(type)) result = DType::int64;
    if (op == Op::argmax || op == Op::argmin) result = DType::int64;
    b.reduce(op, result, value);
  }

  bool after_reduction(const Builder& b, std::int16_t id) const {
    const Instruction& instruction = b.group.code[static_cast<std::size_t>(id)];
    if (instruction.kind == Kind::reduce) return true;
    for (const auto input : instruction.inputs) {
      if (input >= 0 && after_reduction(b, input)) return true;
    }
    return false;
  }

  void add_store(Builder& b, std::int16_t value, Extent extent) {
    const DType type = type_of(b, value);
    b.push({.kind = Kind::store,
            .dtype = type,
            .extent = extent,
            .inputs = {value, -1, -1},
            .access = new_access(b, type, false, extent)});
  }

  std::mt19937 random_;
  bool doubles_;
  std::int16_t first_full_ = 0;
};

/// A failure that names the first element that differs.
inline void expect_equal(const Builder& b, Memory& got, Memory& wanted, unsigned seed) {
  if (got == wanted) return;
  for (const Access& access : b.group.accesses) {
    if (access.slot < 0) continue;
    for (std::int64_t i = 0; i < got.bytes(access.slot) / static_cast<std::int64_t>(size_of(access.dtype)); ++i) {
      const auto bytes = static_cast<std::int64_t>(size_of(access.dtype));
      const Number have = load_number(access.dtype, got.slot(access.slot) + i * bytes);
      const Number want = load_number(access.dtype, wanted.slot(access.slot) + i * bytes);
      if (std::memcmp(got.slot(access.slot) + i * bytes, wanted.slot(access.slot) + i * bytes,
                      static_cast<std::size_t>(bytes)) != 0) {
        ADD_FAILURE() << "seed " << seed << ", slot " << access.slot << ", element " << i << ": " << have.real << "/"
                      << have.integer << " instead of " << want.real << "/" << want.integer << "\n"
                      << compile::to_string(b.group);
        return;
      }
    }
  }
  ADD_FAILURE() << "seed " << seed << ": bytes outside changed\n" << compile::to_string(b.group);
}

}  // namespace russet::test
