#pragma once
// Arrays of any layout and single steps on the CPU, for the tests of its kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "device/cpu/operand.h"
#include "device/cpu/target.h"

namespace russet::testing {

using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

inline std::mt19937& generator() {
  static std::mt19937 generator(20240501);
  return generator;
}

inline std::int64_t pick(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(generator());
}

enum class Layout { row_major, channels_last, batch_last, permuted, gaps };

/// An array in memory of any layout; `values` are in row-major order.
struct Array {
  DType dtype = DType::float32;
  Shape shape;
  std::vector<double> values{};
  Strides strides{};
  std::int64_t offset = 0;
  std::vector<std::byte> memory{};

  Array(DType dtype, const Shape& shape, Layout layout = Layout::row_major) : dtype(dtype), shape(shape) {
    values.resize(static_cast<std::size_t>(numel(shape)));
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (layout == Layout::channels_last && shape.rank() == 4) order = {0, 2, 3, 1};
    if (layout == Layout::batch_last && shape.rank() == 4) order = {1, 2, 3, 0};
    if (layout == Layout::permuted) std::shuffle(order.begin(), order.end(), generator());
    strides = Strides::filled(shape.rank(), 0);
    std::int64_t step = layout == Layout::gaps ? 2 : 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      const int axis = order[static_cast<std::size_t>(i)];
      strides[axis] = step;
      step *= std::max<std::int64_t>(shape[axis], 1);
      if (layout == Layout::gaps) step += 3;
    }
    offset = layout == Layout::gaps ? 5 : 0;
    memory.resize(static_cast<std::size_t>(step + offset + 1) * size_of(dtype), std::byte{0x7f});
  }

  template <class Visit>
  void each(Visit&& visit) {
    std::size_t i = 0;
    cpu::walk(
        shape, [&](std::int64_t at) { visit(i++, (offset + at) * static_cast<std::int64_t>(size_of(dtype))); },
        strides);
  }
  void write() {
    visit_dtype(dtype, [&]<class Element>() {
      each([&](std::size_t i, std::int64_t at) {
        const auto element = convert_element<Element>(values[i]);
        std::memcpy(memory.data() + at, &element, sizeof(Element));
        values[i] = convert_element<double>(element);
      });
    });
  }
  void read() {
    visit_dtype(dtype, [&]<class Element>() {
      each([&](std::size_t i, std::int64_t at) {
        Element element;
        std::memcpy(&element, memory.data() + at, sizeof(Element));
        values[i] = convert_element<double>(element);
      });
    });
  }

  /// Eighths between -2 and 2, or small integers.
  Array& randomise() {
    for (double& value : values) {
      value = is_floating(dtype)        ? static_cast<double>(pick(-16, 16)) / 8
              : dtype == DType::boolean ? static_cast<double>(pick(0, 1))
              : dtype == DType::uint8   ? static_cast<double>(pick(0, 9))
                                        : static_cast<double>(pick(-9, 9));
    }
    write();
    return *this;
  }

  double& at(std::initializer_list<std::int64_t> index) {
    std::int64_t position = 0;
    int axis = 0;
    for (const std::int64_t i : index) position = position * shape[axis++] + i;
    return values[static_cast<std::size_t>(position)];
  }
};

inline Primitive step(Op op, ops::Attributes attributes = {}, std::int32_t argument = -1) {
  Primitive primitive;
  primitive.op = op;
  primitive.attributes = attributes;
  primitive.argument = argument;
  return primitive;
}

struct Ran {
  std::string kernel;
};

/// Runs a step on the CPU. `extra` are arrays of the epilogue, in slots after the output's.
inline Ran run(Primitive primitive, std::vector<Array*> inputs, Array& output, std::vector<Array*> extra = {},
               std::uint64_t argument = 0) {
  std::vector<Array*> all = inputs;
  all.push_back(&output);
  all.insert(all.end(), extra.begin(), extra.end());
  std::vector<std::byte*> slots;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Operand operand{{static_cast<std::int32_t>(i), all[i]->dtype, all[i]->offset, -1, all[i]->strides},
                          all[i]->shape};
    if (i < inputs.size()) primitive.inputs.push_back(operand);
    if (i == inputs.size()) primitive.output = operand;
    slots.push_back(all[i]->memory.data());
  }
  const auto kernel = cpu::target().compile(primitive);
  std::vector<std::byte> scratch(kernel->scratch_bytes() + 64, std::byte{0xff});
  auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  kernel->run({slots.data(), &argument, aligned});
  output.read();
  return {kernel->name()};
}

inline void expect_close(const Array& got, const std::vector<double>& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.values.size(), expected.size()) << what;
  double largest = 1e-30;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got.values[i], expected[i], tolerance * largest) << what << " at " << i;
  }
}

inline double tolerance_of(DType dtype) {
  if (dtype == DType::bfloat16) return 1.0 / 128;
  if (dtype == DType::float16) return 1.0 / 1024;
  return dtype == DType::float32 ? 2e-6 : 1e-14;
}

inline double wrapped(double value, DType dtype) {
  double result = value;
  if (!is_floating(dtype)) {
    visit_dtype(dtype, [&]<class Element>() {
      result = convert_element<double>(convert_element<Element>(static_cast<std::int64_t>(value)));
    });
  }
  return result;
}

constexpr DType numeric[] = {DType::float32, DType::bfloat16, DType::float16, DType::float64,
                             DType::int64,   DType::int32,    DType::int8,    DType::uint8};

}  // namespace russet::testing
