// Every primitive kernel of the CPU against loops in double, written here, on random sizes, layouts and types.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "base/parallel.h"
#include "device/cpu/operand.h"
#include "device/cpu/target.h"

namespace russet {
namespace {

using compile::Access;
using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

std::mt19937& generator() {
  static std::mt19937 generator(20240501);
  return generator;
}

std::int64_t pick(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(generator());
}

enum class Layout { row_major, channels_last, permuted, gaps };

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
    if (layout == Layout::permuted) std::shuffle(order.begin(), order.end(), generator());
    strides = Strides(shape.rank(), 0);
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
        shape, [&](std::int64_t at) { visit(i++, (offset + at) * static_cast<std::int64_t>(size_of(dtype))); }, strides);
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
      value = is_floating(dtype)           ? static_cast<double>(pick(-16, 16)) / 8
              : dtype == DType::boolean    ? static_cast<double>(pick(0, 1))
              : dtype == DType::uint8      ? static_cast<double>(pick(0, 9))
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

Primitive step(Op op, ops::Attributes attributes = {}, std::int32_t argument = -1) {
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
Ran run(Primitive primitive, std::vector<Array*> inputs, Array& output, std::vector<Array*> extra = {},
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

void expect_close(const Array& got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.values.size(), expected.size()) << what;
  double largest = 1e-30;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got.values[i], expected[i], tolerance * largest) << what << " at " << i;
  }
}

double tolerance_of(DType dtype) {
  if (dtype == DType::bfloat16) return 1.0 / 128;
  if (dtype == DType::float16) return 1.0 / 1024;
  return dtype == DType::float32 ? 2e-6 : 1e-14;
}

double wrapped(double value, DType dtype) {
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

// ---- matmul

std::vector<double> multiply(Array& a, Array& b, const Shape& shape) {
  const int rank = shape.rank();
  Strides a_steps(rank, 0);
  Strides b_steps(rank, 0);
  const auto steps_of = [&](const Array& array, Strides& steps) {
    const Strides own = contiguous_strides(array.shape);
    for (int i = 0; i < own.rank(); ++i) {
      if (array.shape[i] != 1) steps[rank - own.rank() + i] = own[i];
    }
  };
  steps_of(a, a_steps);
  steps_of(b, b_steps);
  const std::int64_t inner = a.shape.back();
  const std::int64_t a_inner = inner == 1 ? 0 : 1;
  const std::int64_t b_inner = b.shape[b.shape.rank() - 2] == 1 ? 0 : b_steps[rank - 2];
  a_steps[rank - 1] = 0;
  b_steps[rank - 2] = 0;
  std::vector<double> result;
  cpu::walk(
      shape,
      [&](std::int64_t at_a, std::int64_t at_b) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += a.values[static_cast<std::size_t>(at_a + k * a_inner)] *
                 b.values[static_cast<std::size_t>(at_b + k * b_inner)];
        }
        result.push_back(sum);
      },
      a_steps, b_steps);
  return result;
}

void check_matmul(const Shape& a_shape, const Shape& b_shape, const Shape& c_shape, DType type, Layout layout) {
  Array a(type, a_shape, layout);
  Array b(type, b_shape, layout);
  Array c(type, c_shape, layout);
  a.randomise();
  b.randomise();
  const Ran ran = run(step(Op::matmul), {&a, &b}, c);
  std::vector<double> expected = multiply(a, b, c_shape);
  for (double& value : expected) value = wrapped(value, type);
  expect_close(c, expected, tolerance_of(type),
               std::string(name_of(type)) + to_string(a_shape) + to_string(b_shape) + " " + ran.kernel);
}

TEST(CpuMatmul, EveryTypeAndLayout) {
  for (const DType type : numeric) {
    for (const Layout layout : {Layout::row_major, Layout::permuted, Layout::gaps}) {
      for (int round = 0; round < 6; ++round) {
        const std::int64_t m = pick(1, 40);
        const std::int64_t n = pick(1, 70);
        const std::int64_t k = pick(1, 50);
        check_matmul({m, k}, {k, n}, {m, n}, type, layout);
        check_matmul({3, m, k}, {3, k, n}, {3, m, n}, type, layout);
      }
    }
  }
}

TEST(CpuMatmul, BatchAxesBroadcast) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::float64}) {
    check_matmul({4, 1, 5, 6}, {3, 6, 7}, {4, 3, 5, 7}, type, Layout::row_major);
    check_matmul({5, 6}, {2, 3, 6, 7}, {2, 3, 5, 7}, type, Layout::permuted);
    check_matmul({2, 3, 5, 6}, {6, 7}, {2, 3, 5, 7}, type, Layout::row_major);
    check_matmul({2, 1, 5, 6}, {1, 3, 6, 7}, {2, 3, 5, 7}, type, Layout::gaps);
  }
}

TEST(CpuMatmul, EmptyAndSingle) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::float64}) {
    check_matmul({0, 4}, {4, 3}, {0, 3}, type, Layout::row_major);
    check_matmul({2, 0}, {0, 3}, {2, 3}, type, Layout::row_major);
    check_matmul({2, 4}, {4, 0}, {2, 0}, type, Layout::row_major);
    check_matmul({1, 1}, {1, 1}, {1, 1}, type, Layout::row_major);
    check_matmul({0, 2, 4}, {0, 4, 3}, {0, 2, 3}, type, Layout::row_major);
  }
}

TEST(CpuMatmul, LargeAndDeep) {
  for (const DType type : {DType::float32, DType::float64}) {
    check_matmul({300, 600}, {600, 540}, {300, 540}, type, Layout::permuted);
    check_matmul({6, 5000}, {5000, 25}, {6, 25}, type, Layout::gaps);
    check_matmul({64, 400}, {400, 120}, {64, 120}, type, Layout::row_major);
  }
  check_matmul({6, 5000}, {5000, 25}, {6, 25}, DType::int32, Layout::gaps);
}

// ---- epilogues

/// Builds the code of an epilogue; access 0 is the contraction's result.
struct EpilogueCode {
  compile::Group group;

  explicit EpilogueCode(const Shape& sizes) {
    group.space = sizes;
    group.split = sizes.rank();
    group.accesses.push_back({-1, DType::float32, 0, -1, contiguous_strides(sizes)});
  }
  std::int16_t add(compile::Instruction instruction) {
    group.code.push_back(instruction);
    return static_cast<std::int16_t>(group.code.size() - 1);
  }
  std::int16_t load(std::int16_t access) {
    compile::Instruction load;
    load.kind = compile::Instruction::Kind::load;
    load.dtype = group.accesses[static_cast<std::size_t>(access)].dtype;
    load.access = access;
    return add(load);
  }
  std::int16_t operand(std::int32_t slot, DType type, const Strides& strides) {
    group.accesses.push_back({slot, type, 0, -1, strides});
    return load(static_cast<std::int16_t>(group.accesses.size() - 1));
  }
  std::int16_t number(double value) {
    compile::Instruction constant;
    constant.kind = compile::Instruction::Kind::constant;
    constant.number.real = value;
    return add(constant);
  }
  std::int16_t compute(Op op, std::int16_t a, std::int16_t b = -1, DType type = DType::float32) {
    compile::Instruction compute;
    compute.op = op;
    compute.dtype = type;
    compute.inputs = {a, b, -1};
    return add(compute);
  }
  void store(std::int32_t slot, DType type, const Strides& strides, std::int16_t value) {
    group.accesses.push_back({slot, type, 0, -1, strides});
    compile::Instruction store;
    store.kind = compile::Instruction::Kind::store;
    store.dtype = type;
    store.access = static_cast<std::int16_t>(group.accesses.size() - 1);
    store.inputs[0] = value;
    add(store);
  }
};

TEST(CpuEpilogue, BiasScaleAddAndRelu) {
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const std::int64_t m : {7, 200}) {
      for (const bool relu : {false, true}) {
        const std::int64_t n = 130;
        const std::int64_t k = 33;
        Array a(type, {m, k});
        Array b(type, {k, n});
        Array bias(type, {n});
        Array other(type, {m, n});
        Array c(type, {m, n});
        for (Array* array : {&a, &b, &bias, &other}) array->randomise();
        Primitive primitive = step(Op::matmul);
        EpilogueCode code({m, n});
        std::int16_t value = code.load(0);
        if (type == DType::bfloat16) value = code.compute(Op::cast, value, -1, type);
        value = code.compute(Op::add, value, code.operand(3, type, {0, 1}), type);
        value = code.compute(Op::mul, code.number(0.5), value, type);
        value = code.compute(Op::add, code.operand(4, type, {n, 1}), value, type);
        if (relu) value = code.compute(Op::maximum, value, code.number(0), type);
        code.store(2, type, {n, 1}, value);
        primitive.epilogue = code.group;
        primitive.inputs = {{{0, type, 0, -1, a.strides}, a.shape}, {{1, type, 0, -1, b.strides}, b.shape}};
        primitive.output = {{2, type, 0, -1, c.strides}, c.shape};
        if (!cpu::target().accepts_epilogue(primitive)) {
          ADD_FAILURE() << "declined for " << name_of(type);
          continue;
        }
        primitive.inputs.clear();
        const Ran ran = run(primitive, {&a, &b}, c, {&bias, &other});
        std::vector<double> expected = multiply(a, b, c.shape);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] =
              (expected[i] + bias.values[i % static_cast<std::size_t>(n)]) * 0.5 + other.values[i];
          if (relu) expected[i] = std::max(expected[i], 0.0);
        }
        expect_close(c, expected, tolerance_of(type), ran.kernel);
      }
    }
  }
}

TEST(CpuEpilogue, ActivationsAreAccurateAndKeepNan) {
  const auto gelu = [](double x) { return x * (1 + std::erf(x * std::sqrt(0.5))) / 2; };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  struct Case {
    Op op;
    std::function<double(double)> truth;
  };
  for (const Case& c : {Case{Op::tanh, [](double x) { return std::tanh(x); }}, Case{Op::sigmoid, sigmoid},
                        Case{Op::erf, gelu}}) {
    Array a(DType::float32, {20, 8});
    Array b(DType::float32, {8, 48});
    Array y(DType::float32, {20, 48});
    a.randomise();
    b.randomise();
    a.at({1, 2}) = std::nan("");
    a.write();
    Primitive primitive = step(Op::matmul);
    EpilogueCode code({20, 48});
    const std::int16_t x = code.load(0);
    std::int16_t value = 0;
    if (c.op == Op::erf) {
      value = code.compute(Op::erf, code.compute(Op::mul, x, code.number(std::sqrt(0.5))));
      value = code.compute(Op::mul, code.compute(Op::add, value, code.number(1)), code.number(0.5));
      value = code.compute(Op::mul, x, value);
    } else {
      value = code.compute(c.op, x);
    }
    code.store(2, DType::float32, {48, 1}, value);
    primitive.epilogue = code.group;
    const Ran ran = run(primitive, {&a, &b}, y);
    const std::vector<double> sums = multiply(a, b, y.shape);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (std::isnan(sums[i])) {
        EXPECT_TRUE(std::isnan(y.values[i])) << ran.kernel;
      } else {
        EXPECT_NEAR(y.values[i], c.truth(sums[i]), 2e-6 * std::max(1.0, std::abs(sums[i]))) << ran.kernel;
      }
    }
  }
}

TEST(CpuEpilogue, ReluKeepsNan) {
  Array a(DType::float32, {3, 4});
  Array b(DType::float32, {4, 40});
  Array c(DType::float32, {3, 40});
  a.randomise();
  b.randomise();
  a.at({1, 2}) = std::nan("");
  a.write();
  Primitive primitive = step(Op::matmul);
  EpilogueCode code({3, 40});
  code.store(2, DType::float32, {40, 1}, code.compute(Op::maximum, code.load(0), code.number(0)));
  primitive.epilogue = code.group;
  run(primitive, {&a, &b}, c);
  for (std::int64_t j = 0; j < 40; ++j) {
    EXPECT_TRUE(std::isnan(c.at({1, j})));
    EXPECT_FALSE(std::isnan(c.at({0, j})));
  }
}

TEST(CpuEpilogue, WhatIsNotUnderstoodIsDeclined) {
  Primitive primitive = step(Op::matmul);
  primitive.inputs = {{{0, DType::float32, 0, -1, {4, 1}}, {3, 4}}, {{1, DType::float32, 0, -1, {5, 1}}, {4, 5}}};
  primitive.output = {{2, DType::float32, 0, -1, {5, 1}}, {3, 5}};
  EpilogueCode code({3, 5});
  const std::int16_t value = code.load(0);
  code.store(2, DType::float32, {5, 1}, code.compute(Op::mul, value, code.compute(Op::cos, value)));
  primitive.epilogue = code.group;
  EXPECT_FALSE(cpu::target().accepts_epilogue(primitive));
}

// ---- convolutions

using Visit = std::function<void(std::size_t x, std::size_t weight, std::size_t y)>;

void each_product(const Window& w, const Shape& x, const Shape& weight, const Shape& y, const Visit& visit) {
  const std::int64_t outputs = y[1] / w.groups;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t oh = 0; oh < y[2]; ++oh)
        for (std::int64_t ow = 0; ow < y[3]; ++ow)
          for (std::int64_t c = 0; c < weight[1]; ++c)
            for (std::int64_t i = 0; i < weight[2]; ++i)
              for (std::int64_t j = 0; j < weight[3]; ++j) {
                const std::int64_t h = oh * w.stride[0] - w.padding[0] + i * w.dilation[0];
                const std::int64_t v = ow * w.stride[1] - w.padding[1] + j * w.dilation[1];
                if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                const std::int64_t channel = o / outputs * weight[1] + c;
                visit(static_cast<std::size_t>(((n * x[1] + channel) * x[2] + h) * x[3] + v),
                      static_cast<std::size_t>(((o * weight[1] + c) * weight[2] + i) * weight[3] + j),
                      static_cast<std::size_t>(((n * y[1] + o) * y[2] + oh) * y[3] + ow));
              }
}

struct ConvolutionCase {
  Window window;
  Shape x, weight;

  Shape y() const {
    Shape y{x[0], weight[0], 0, 0};
    for (int i = 0; i < 2; ++i) {
      const auto axis = static_cast<std::size_t>(i);
      y[i + 2] = ops::window_output(x[i + 2], weight[i + 2], window.stride[axis], window.padding[axis],
                                    window.padding_after[axis], window.dilation[axis]);
    }
    return y;
  }
};

ConvolutionCase random_convolution() {
  ConvolutionCase c;
  const std::int32_t groups = pick(0, 2) == 0 ? static_cast<std::int32_t>(pick(2, 4)) : 1;
  const std::int64_t channels = pick(1, 5);
  c.window.groups = groups;
  c.x = {pick(1, 3), groups * channels, pick(5, 12), pick(5, 12)};
  c.weight = {groups * pick(1, 20), channels, pick(1, 4), pick(1, 4)};
  for (std::size_t i = 0; i < 2; ++i) {
    c.window.stride[i] = static_cast<std::int32_t>(pick(1, 3));
    c.window.padding[i] = static_cast<std::int32_t>(pick(0, 2));
    c.window.padding_after[i] = static_cast<std::int32_t>(pick(0, 2));
    c.window.dilation[i] = c.weight[static_cast<int>(i) + 2] <= 2 ? static_cast<std::int32_t>(pick(1, 2)) : 1;
  }
  return c;
}

void check_convolution(const ConvolutionCase& c, DType type, Layout layout) {
  const Layout weight_layout = layout == Layout::channels_last ? Layout::row_major : layout;
  Array x(type, c.x, layout);
  Array weight(type, c.weight, weight_layout);
  Array y(type, c.y(), layout);
  const std::string what = std::string(name_of(type)) + to_string(c.x) + to_string(c.weight) + to_string(c.y());
  const auto check = [&](Op op, Array& first, Array& second, Array& result) {
    first.randomise();
    second.randomise();
    Primitive primitive = step(op, c.window);
    const Ran ran = run(primitive, {&first, &second}, result);
    std::vector<double> expected(result.values.size(), 0);
    each_product(c.window, c.x, c.weight, c.y(), [&](std::size_t at_x, std::size_t at_w, std::size_t at_y) {
      if (op == Op::convolution) expected[at_y] += x.values[at_x] * weight.values[at_w];
      if (op == Op::convolution_input) expected[at_x] += y.values[at_y] * weight.values[at_w];
      if (op == Op::convolution_weight) expected[at_w] += x.values[at_x] * y.values[at_y];
    });
    for (double& value : expected) value = wrapped(value, type);
    expect_close(result, expected, tolerance_of(type), what + std::string(ops::row(op).name) + " " + ran.kernel);
  };
  check(Op::convolution, x, weight, y);
  check(Op::convolution_input, y, weight, x);
  check(Op::convolution_weight, x, y, weight);
}

TEST(CpuConvolution, RandomFloat32) {
  for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::permuted, Layout::gaps}) {
    for (int round = 0; round < 40; ++round) check_convolution(random_convolution(), DType::float32, layout);
  }
}

TEST(CpuConvolution, EveryType) {
  for (const DType type : numeric) {
    for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::gaps}) {
      for (int round = 0; round < 8; ++round) check_convolution(random_convolution(), type, layout);
    }
  }
}

TEST(CpuConvolution, ShapesOfNetworks) {
  const auto square = [](std::int32_t kernel, std::int32_t stride, std::int32_t padding, std::int32_t groups = 1) {
    return Window{{kernel, kernel}, {stride, stride}, {padding, padding}, {padding, padding}, {1, 1}, groups};
  };
  const ConvolutionCase cases[] = {
      {square(5, 1, 2), {4, 1, 28, 28}, {6, 1, 5, 5}},      {square(5, 1, 0), {4, 6, 14, 14}, {16, 6, 5, 5}},
      {square(3, 1, 1), {2, 64, 16, 16}, {64, 64, 3, 3}},   {square(3, 2, 1), {2, 64, 15, 15}, {128, 64, 3, 3}},
      {square(7, 2, 3), {1, 3, 56, 56}, {64, 3, 7, 7}},     {square(1, 2, 0), {2, 64, 14, 14}, {128, 64, 1, 1}},
      {square(1, 1, 0), {2, 128, 7, 7}, {64, 128, 1, 1}},   {square(3, 1, 1, 32), {2, 32, 14, 14}, {32, 1, 3, 3}},
      {square(5, 1, 2, 32), {2, 32, 14, 14}, {32, 1, 5, 5}}, {square(7, 2, 3, 48), {2, 48, 15, 15}, {48, 1, 7, 7}},
      {square(16, 16, 0), {1, 3, 64, 64}, {96, 3, 16, 16}},
  };
  for (const ConvolutionCase& c : cases) {
    for (const DType type : {DType::float32, DType::bfloat16, DType::float64}) {
      for (const Layout layout : {Layout::row_major, Layout::channels_last}) check_convolution(c, type, layout);
    }
  }
}

TEST(CpuConvolution, Empty) {
  const ConvolutionCase none{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {0, 3, 8, 8}, {4, 3, 3, 3}};
  const ConvolutionCase small{{{3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}, {2, 3, 2, 2}, {4, 3, 3, 3}};
  for (const DType type : {DType::float32, DType::bfloat16, DType::int32}) {
    check_convolution(none, type, Layout::row_major);
    check_convolution(small, type, Layout::row_major);
  }
}

TEST(CpuEpilogue, ConvolutionBias) {
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const Layout layout : {Layout::row_major, Layout::channels_last}) {
      for (const std::int64_t channels : {3, 32}) {
        const ConvolutionCase c{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {2, channels, 9, 9}, {24, channels, 3, 3}};
        Array x(type, c.x, layout);
        Array weight(type, c.weight);
        Array bias(type, {24});
        Array y(type, c.y(), layout);
        for (Array* array : {&x, &weight, &bias}) array->randomise();
        Primitive primitive = step(Op::convolution, c.window);
        EpilogueCode code(c.y());
        code.store(2, type, y.strides,
                   code.compute(Op::add, code.load(0), code.operand(3, type, {0, 1, 0, 0}), type));
        primitive.epilogue = code.group;
        const Ran ran = run(primitive, {&x, &weight}, y, {&bias});
        std::vector<double> expected(y.values.size());
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = bias.values[i / 81 % 24];
        each_product(c.window, c.x, c.weight, c.y(), [&](std::size_t at_x, std::size_t at_w, std::size_t at_y) {
          expected[at_y] += x.values[at_x] * weight.values[at_w];
        });
        expect_close(y, expected, tolerance_of(type), ran.kernel);
      }
    }
  }
}

// ---- pools

bool larger(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

void check_pools(const Window& w, const Shape& shape, DType type, Layout layout) {
  Shape small = shape;
  for (int i = 0; i < 2; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    small[i + 2] = ops::window_output(shape[i + 2], w.kernel[axis], w.stride[axis], w.padding[axis],
                                      w.padding_after[axis], w.dilation[axis]);
  }
  Array x(type, shape, layout);
  Array v(DType::int64, shape, layout);
  Array g(type, small, layout);
  Array pooled(DType::int64, small, layout);
  Array own(type, small, layout);
  Array sums(type, small, layout);
  Array unpooled(type, shape, layout);
  Array spread(type, shape, layout);
  for (Array* array : {&x, &v, &g}) array->randomise();
  const auto taps = [&](auto&& visit) {
    for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane)
      for (std::int64_t oh = 0; oh < small[2]; ++oh)
        for (std::int64_t ow = 0; ow < small[3]; ++ow)
          for (std::int64_t i = 0; i < w.kernel[0]; ++i)
            for (std::int64_t j = 0; j < w.kernel[1]; ++j) {
              const std::int64_t h = oh * w.stride[0] - w.padding[0] + i * w.dilation[0];
              const std::int64_t u = ow * w.stride[1] - w.padding[1] + j * w.dilation[1];
              if (h < 0 || h >= shape[2] || u < 0 || u >= shape[3]) continue;
              visit(static_cast<std::size_t>((plane * small[2] + oh) * small[3] + ow),
                    static_cast<std::size_t>((plane * shape[2] + h) * shape[3] + u));
            }
  };
  std::vector<std::int64_t> best(g.values.size(), -1);
  std::vector<double> summed(g.values.size(), 0);
  std::vector<double> scattered(x.values.size(), 0);
  taps([&](std::size_t window, std::size_t at) {
    if (best[window] < 0 || larger(x.values[at], x.values[static_cast<std::size_t>(best[window])])) {
      best[window] = static_cast<std::int64_t>(at);
    }
    summed[window] += x.values[at];
    scattered[at] += g.values[window];
  });
  std::vector<double> chosen(g.values.size(), 0);
  std::vector<double> maxima(g.values.size(), 0);
  std::vector<double> back(x.values.size(), 0);
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (best[i] < 0) continue;
    const auto at = static_cast<std::size_t>(best[i]);
    chosen[i] = v.values[at];
    maxima[i] = x.values[at];
    back[at] += g.values[i];
  }
  for (auto* values : {&summed, &scattered, &back}) {
    for (double& value : *values) value = wrapped(value, type);
  }
  const std::string what = std::string(name_of(type)) + to_string(shape) + " layout " + std::to_string(int(layout));
  run(step(Op::max_pool, w), {&x, &v}, pooled);
  expect_close(pooled, chosen, 0, "max_pool " + what);
  run(step(Op::max_pool, w), {&x, &x}, own);
  expect_close(own, maxima, 0, "max_pool of itself " + what);
  run(step(Op::max_unpool, w), {&x, &g}, unpooled);
  expect_close(unpooled, back, tolerance_of(type), "max_unpool " + what);
  run(step(Op::sum_pool, w), {&x}, sums);
  expect_close(sums, summed, tolerance_of(type), "sum_pool " + what);
  run(step(Op::sum_unpool, w), {&g}, spread);
  expect_close(spread, scattered, tolerance_of(type), "sum_unpool " + what);
}

TEST(CpuPool, EveryTypeAndLayout) {
  for (const DType type : numeric) {
    for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::permuted, Layout::gaps}) {
      for (int round = 0; round < 6; ++round) {
        Window w;
        for (std::size_t i = 0; i < 2; ++i) {
          w.kernel[i] = static_cast<std::int32_t>(pick(1, 3));
          w.stride[i] = static_cast<std::int32_t>(pick(1, 3));
          w.padding[i] = static_cast<std::int32_t>(pick(0, 1));
          w.padding_after[i] = static_cast<std::int32_t>(pick(0, 3));
          w.dilation[i] = static_cast<std::int32_t>(pick(1, 2));
        }
        check_pools(w, {pick(1, 3), pick(1, 9), pick(5, 11), pick(5, 11)}, type, layout);
      }
    }
  }
  check_pools({{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}, {0, 3, 8, 8}, DType::float32, Layout::row_major);
}

TEST(CpuPool, NanIsLargestAndTheFirstMaximumWins) {
  Array x(DType::float32, {1, 1, 2, 4});
  Array v(DType::float32, {1, 1, 2, 4});
  Array y(DType::float32, {1, 1, 1, 2});
  x.values = {1, std::nan(""), 3, 3, std::nan(""), 9, 3, 3};
  v.values = {0, 1, 2, 3, 4, 5, 6, 7};
  x.write();
  v.write();
  run(step(Op::max_pool, Window{{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}), {&x, &v}, y);
  EXPECT_EQ(y.values, (std::vector<double>{1, 2}));
}

// ---- indexing, ordering

TEST(CpuIndexing, TakeAndPut) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::uint8, DType::float64}) {
    for (const Layout layout : {Layout::row_major, Layout::permuted, Layout::gaps}) {
      const std::int64_t rows = pick(1, 7);
      const Shape row{pick(1, 4), pick(1, 40)};
      Array x(type, {rows, row[0], row[1]}, layout);
      Array index(DType::int64, {3, 5}, layout);
      Array y(type, {3, 5, row[0], row[1]}, layout);
      x.randomise();
      for (double& value : index.values) value = static_cast<double>(pick(0, rows - 1));
      index.write();
      run(step(Op::take), {&x, &index}, y);
      const auto size = static_cast<std::size_t>(row[0] * row[1]);
      std::vector<double> expected;
      for (const double i : index.values) {
        for (std::size_t j = 0; j < size; ++j) expected.push_back(x.values[static_cast<std::size_t>(i) * size + j]);
      }
      expect_close(y, expected, 0, "take");
      for (const bool add : {false, true}) {
        Array result(type, x.shape, layout);
        y.randomise();
        std::vector<double> sums = x.values;
        for (std::size_t i = 0; i < index.values.size(); ++i) {
          for (std::size_t j = 0; j < size; ++j) {
            double& element = sums[static_cast<std::size_t>(index.values[i]) * size + j];
            element = wrapped(add ? element + y.values[i * size + j] : y.values[i * size + j], type);
          }
        }
        run(step(Op::put, ops::Accumulate{add}), {&x, &index, &y}, result);
        expect_close(result, sums, tolerance_of(type), "put");
      }
    }
  }
}

TEST(CpuIndexing, OutOfRangeNamesIndexAndSize) {
  Array x(DType::float32, {4, 2});
  Array index(DType::int64, {3});
  Array y(DType::float32, {3, 2});
  x.randomise();
  for (const double wrong : {4.0, -1.0}) {
    index.values = {0, wrong, 1};
    index.write();
    try {
      run(step(Op::take), {&x, &index}, y);
      ADD_FAILURE();
    } catch (const IndexError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(static_cast<int>(wrong))), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("4 rows"), std::string::npos);
    }
    Array result(DType::float32, {4, 2});
    EXPECT_THROW(run(step(Op::put, ops::Accumulate{true}), {&x, &index, &y}, result), IndexError);
  }
}

TEST(CpuOrdering, ArgsortIsStableAndNanIsLargest) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::uint8, DType::boolean}) {
    for (const bool descending : {false, true}) {
      for (const std::int64_t length : {0, 1, 7, 100, 40000}) {
        Array x(type, {2, length, 3}, length < 1000 ? Layout::gaps : Layout::row_major);
        Array order(DType::int64, x.shape);
        x.randomise();
        if (is_floating(type) && length == 100) x.at({1, 50, 2}) = x.at({1, 30, 2}) = std::nan("");
        x.write();
        run(step(Op::argsort, ops::Axes{2, descending}), {&x}, order);
        for (std::int64_t a = 0; a < 2; ++a) {
          for (std::int64_t b = 0; b < 3; ++b) {
            std::vector<std::int64_t> expected(static_cast<std::size_t>(length));
            std::iota(expected.begin(), expected.end(), 0);
            std::stable_sort(expected.begin(), expected.end(), [&](std::int64_t i, std::int64_t j) {
              return descending ? larger(x.at({a, i, b}), x.at({a, j, b})) : larger(x.at({a, j, b}), x.at({a, i, b}));
            });
            for (std::int64_t i = 0; i < length; ++i) {
              ASSERT_EQ(order.at({a, i, b}), static_cast<double>(expected[static_cast<std::size_t>(i)]));
            }
          }
        }
      }
    }
  }
}

TEST(CpuOrdering, Cumsum) {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::float64}) {
    Array x(type, {3, 50, 4}, Layout::gaps);
    Array y(type, x.shape);
    x.randomise();
    run(step(Op::cumsum, ops::Axes{2, false}), {&x}, y);
    std::vector<double> expected = x.values;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (i / 4 % 50 != 0) expected[i] += expected[i - 4];
    }
    expect_close(y, expected, tolerance_of(type), "cumsum");
  }
}

// ---- what groups compute

TEST(CpuPlain, ReductionsThatNoGroupTook) {
  for (const DType type : {DType::float32, DType::int32, DType::float64}) {
    Array x(type, {5, 6, 7}, Layout::permuted);
    x.randomise();
    for (const std::uint32_t mask : {1U, 2U, 4U, 5U, 7U}) {
      Shape kept = x.shape;
      for (int axis = 0; axis < 3; ++axis) {
        if ((mask >> axis) & 1U) kept[axis] = 1;
      }
      Array y(type == DType::int32 ? DType::int64 : type, kept);
      run(step(Op::sum, ops::Axes{mask, false}), {&x}, y);
      std::vector<double> expected(y.values.size(), 0);
      std::size_t position = 0;
      Strides steps = contiguous_strides(kept);
      for (int axis = 0; axis < 3; ++axis) {
        if (kept[axis] == 1) steps[axis] = 0;
      }
      cpu::walk(
          x.shape, [&](std::int64_t at) { expected[static_cast<std::size_t>(at)] += x.values[position++]; }, steps);
      expect_close(y, expected, tolerance_of(type), "sum");
    }
  }
}

TEST(CpuPlain, StridedAndOverwrite) {
  for (const Layout layout : {Layout::row_major, Layout::gaps}) {
    Array x(DType::float32, {6, 8}, layout);
    Array y(DType::float32, {4, 3}, layout);
    x.randomise();
    run(step(Op::strided, ops::View{{1, 16}, 2, false}), {&x}, y);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 3; ++j) expected.push_back(x.values[2 + i + 16 * j]);
    }
    expect_close(y, expected, 0, "strided");
    Array z(DType::float32, {6, 8}, layout);
    y.randomise();
    run(step(Op::overwrite, ops::View{{1, 16}, 0, true}, 0), {&x, &y}, z, {}, 3);
    expected = x.values;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 3; ++j) expected[3 + i + 16 * j] = y.values[i * 3 + j];
    }
    expect_close(z, expected, 0, "overwrite");
  }
}

TEST(CpuPlain, ElementwisePrimitives) {
  Array a(DType::float32, {3, 5}, Layout::gaps);
  Array b(DType::float32, {3, 5});
  Array c(DType::float32, {3, 5});
  a.randomise();
  b.randomise();
  run(step(Op::mul), {&a, &b}, c);
  std::vector<double> expected;
  for (std::size_t i = 0; i < 15; ++i) expected.push_back(a.values[i] * b.values[i]);
  expect_close(c, expected, 1e-7, "mul");
}

// ---- results do not depend on the number of threads

TEST(CpuThreads, OwnKernelsGiveTheSameBits) {
  const int before = base::thread_count();
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3}) {
    base::set_thread_count(threads);
    generator().seed(7);
    Array a(DType::float32, {6, 9000}, Layout::gaps);
    Array b(DType::float32, {9000, 50}, Layout::gaps);
    Array c(DType::float32, {6, 50});
    for (double& value : a.values) value = static_cast<double>(pick(-1000, 1000)) / 999;
    for (double& value : b.values) value = static_cast<double>(pick(-1000, 1000)) / 999;
    a.write();
    b.write();
    run(step(Op::matmul), {&a, &b}, c);
    results.push_back(c.values);
    EXPECT_EQ(results.back(), results.front());
  }
  base::set_thread_count(before);
}

}  // namespace
}  // namespace russet
