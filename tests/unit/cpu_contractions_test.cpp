// Contractions of the CPU against loops in double, written here, on random sizes, layouts and types.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <algorithm>
#include <functional>

#include "base/parallel.h"
#include "device/cpu/cpuid.h"
#include "unit/cpu_case.h"

namespace russet::testing {
namespace {

// ---- matmul

std::vector<double> multiply(Array& a, Array& b, const Shape& shape) {
  const int rank = shape.rank();
  Strides a_steps = Strides::filled(rank, 0);
  Strides b_steps = Strides::filled(rank, 0);
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

TEST(CpuMatmul, WideProductsGoToOpenBlas) {
  for (const Shape& sizes : {Shape{37, 1600, 50}, Shape{300, 1537, 21}, Shape{1, 3072, 64}}) {
    Array a(DType::float32, {2, sizes[0], sizes[2]}), b(DType::float32, {sizes[2], sizes[1]});
    Array c(DType::float32, {2, sizes[0], sizes[1]});
    a.randomise();
    b.randomise();
    EXPECT_EQ(run(step(Op::matmul), {&a, &b}, c).kernel, "blas");
    expect_close(c, multiply(a, b, c.shape), tolerance_of(DType::float32), to_string(sizes));
  }
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

/// A row or a column whose elements do not lie side by side: oneDNN 3.7 takes them to.
TEST(CpuMatmul, VectorsWithGaps) {
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const Shape& sizes : {Shape{1, 45, 1}, Shape{1, 45, 33}, Shape{17, 45, 1}, Shape{17, 1, 1}}) {
      for (const Layout layout : {Layout::row_major, Layout::gaps}) {
        const std::int64_t m = sizes[0], k = sizes[1], n = sizes[2];
        check_matmul({m, k}, {k, n}, {m, n}, type, layout);
        check_matmul({3, m, k}, {3, k, n}, {3, m, n}, type, layout);
        check_matmul({3, m, k}, {k, n}, {3, m, n}, type, layout);
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

/// Heads of an attention lie between each other in memory: [batch, length, heads, depth].
TEST(CpuMatmul, HeadsBetweenEachOther) {
  Array source(DType::float64, {2, 37, 9, 16}, Layout::row_major);
  source.randomise();
  const auto attend = [&](DType type, Device device) {
    const Tensor qkv = Tensor::from(source.values, {2, 37, 9, 16}).to(type).to(device);
    const auto heads = [&](std::int64_t part) { return qkv.narrow(2, part * 3, 3).permute({0, 2, 1, 3}); };
    const Tensor scores = matmul(heads(0), heads(1).transpose(-2, -1));
    const Tensor result =
        matmul(scores, heads(2)).transpose(1, 2) + matmul(scores.transpose(-2, -1), heads(0)).transpose(1, 2);
    return result.to(Device(DeviceType::cpu)).to(DType::float64);
  };
  for (const DType type : {DType::float32, DType::bfloat16}) {
    const Tensor expected = attend(type, Device(DeviceType::reference));
    const Tensor result = attend(type, Device(DeviceType::cpu));
    const double largest = amax(abs(expected)).item<double>();
    EXPECT_LE(amax(abs(result - expected)).item<double>(), largest * (type == DType::float32 ? 1e-6 : 0.02));
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

/// Whether oneDNN has kernels for the gradients of convolutions, not just reference loops: elsewhere it wants Arm's
/// library for them, which distributions build it without. Our own kernels compute them then.
#ifdef __x86_64__
constexpr bool onednn_computes = true;
#else
constexpr bool onednn_computes = false;
#endif

/// Whether it has kernels for products that keep to our scratch space: its kernels for AVX2 allocate. BLAS computes
/// products then.
bool onednn_multiplies() {
  const std::vector<std::string> sets = cpu::instruction_sets();
  return onednn_computes && std::ranges::find(sets, "avx512bw") != sets.end();
}

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
          EXPECT_FALSE(onednn_multiplies()) << "declined for " << name_of(type);
          EXPECT_EQ(type, DType::float32) << "BLAS has no other type of these";
          continue;
        }
        primitive.inputs.clear();
        const Ran ran = run(primitive, {&a, &b}, c, {&bias, &other});
        std::vector<double> expected = multiply(a, b, c.shape);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] = (expected[i] + bias.values[i % static_cast<std::size_t>(n)]) * 0.5 + other.values[i];
          if (relu) expected[i] = std::max(expected[i], 0.0);
        }
        expect_close(c, expected, tolerance_of(type), ran.kernel);
      }
    }
  }
}

TEST(CpuEpilogue, ActivationsAreAccurateAndKeepNan) {
  if (!onednn_multiplies()) GTEST_SKIP() << "only oneDNN takes functions as epilogues, and it has no products here";
  const auto gelu = [](double x) { return x * (1 + std::erf(x * std::sqrt(0.5))) / 2; };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  struct Case {
    Op op;
    std::function<double(double)> truth;
  };
  for (const Case& c :
       {Case{Op::tanh, [](double x) { return std::tanh(x); }}, Case{Op::sigmoid, sigmoid}, Case{Op::ndtr, gelu}}) {
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
    std::int16_t value = code.compute(c.op, x);
    if (c.op == Op::ndtr) value = code.compute(Op::mul, x, value);
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

TEST(CpuEpilogue, ReluLeavesNoNegativeZero) {
  for (const DType type : {DType::float32, DType::float64}) {
    Array a(type, {3, 4});
    Array b(type, {4, 40});
    Array c(type, {3, 40});
    a.write();
    b.randomise();
    Primitive primitive = step(Op::matmul);
    EpilogueCode code({3, 40});
    code.group.accesses[0].dtype = type;
    const std::int16_t negated = code.compute(Op::mul, code.load(0), code.number(-1), type);
    code.store(2, type, {40, 1}, code.compute(Op::maximum, negated, code.number(0), type));
    primitive.epilogue = code.group;
    const Ran ran = run(primitive, {&a, &b}, c);
    for (const double value : c.values) EXPECT_FALSE(std::signbit(value)) << ran.kernel;
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

TEST(CpuEpilogue, NoProductGetsSlowerForAnEpilogue) {
  // oneDNN's input gradients take no epilogue; our own products do, but are slower than oneDNN and a group.
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  Primitive primitive = step(Op::convolution_input, window);
  const auto operand = [](std::int32_t slot, const Shape& sizes, const Strides& strides) {
    return Operand{{slot, DType::float32, 0, -1, strides}, sizes};
  };
  const Shape sizes{2, 64, 9, 9};
  const Strides last{64 * 81, 1, 9 * 64, 64};
  primitive.inputs = {operand(0, sizes, last), operand(1, {64, 64, 3, 3}, contiguous_strides({64, 64, 3, 3}))};
  primitive.output = operand(2, sizes, last);
  EpilogueCode code(sizes);
  code.store(2, DType::float32, last, code.compute(Op::mul, code.load(0), code.operand(3, DType::float32, last)));
  primitive.epilogue = code.group;
  EXPECT_EQ(cpu::target().accepts_epilogue(primitive), !onednn_computes);
  primitive.inputs[0].access.dtype = primitive.inputs[1].access.dtype = primitive.output.access.dtype = DType::float64;
  primitive.epilogue.accesses.back().dtype = DType::float64;
  EXPECT_TRUE(cpu::target().accepts_epilogue(primitive));
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

/// `kernel`, if given, is the one that must run.
void check_convolution(const ConvolutionCase& c, DType type, Layout layout, const std::string& kernel = {}) {
  const Layout weight_layout =
      layout == Layout::channels_last || layout == Layout::batch_last ? Layout::row_major : layout;
  Array x(type, c.x, layout);
  Array weight(type, c.weight, weight_layout);
  Array y(type, c.y(), layout);
  const std::string what = std::string(name_of(type)) + to_string(c.x) + to_string(c.weight) + to_string(c.y());
  const auto check = [&](Op op, Array& first, Array& second, Array& result) {
    first.randomise();
    second.randomise();
    Primitive primitive = step(op, c.window);
    const Ran ran = run(primitive, {&first, &second}, result);
    if (!kernel.empty()) {
      EXPECT_EQ(ran.kernel, kernel) << what;
    }
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

TEST(CpuConvolution, LanesAlongTheBatch) {
  for (const Layout layout : {Layout::batch_last, Layout::row_major, Layout::channels_last, Layout::gaps}) {
    for (int round = 0; round < 30; ++round) {
      ConvolutionCase c = random_convolution();
      c.x[0] = pick(32, 50);
      c.weight[0] = c.window.groups * pick(1, 15 / c.window.groups);
      c.weight[1] = pick(1, 16 / c.window.groups);
      c.x[1] = c.window.groups * c.weight[1];
      check_convolution(c, DType::float32, layout, "batch lanes");
    }
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
      {square(5, 1, 2), {4, 1, 28, 28}, {6, 1, 5, 5}},       {square(5, 1, 0), {4, 6, 14, 14}, {16, 6, 5, 5}},
      {square(3, 1, 1), {2, 64, 16, 16}, {64, 64, 3, 3}},    {square(3, 2, 1), {2, 64, 15, 15}, {128, 64, 3, 3}},
      {square(7, 2, 3), {1, 3, 56, 56}, {64, 3, 7, 7}},      {square(1, 2, 0), {2, 64, 14, 14}, {128, 64, 1, 1}},
      {square(1, 1, 0), {2, 128, 7, 7}, {64, 128, 1, 1}},    {square(3, 1, 1, 32), {2, 32, 14, 14}, {32, 1, 3, 3}},
      {square(5, 1, 2, 32), {2, 32, 14, 14}, {32, 1, 5, 5}}, {square(7, 2, 3, 48), {2, 48, 15, 15}, {48, 1, 7, 7}},
      {square(16, 16, 0), {1, 3, 64, 64}, {96, 3, 16, 16}},
  };
  for (const ConvolutionCase& c : cases) {
    for (const DType type : {DType::float32, DType::bfloat16, DType::float64}) {
      for (const Layout layout : {Layout::row_major, Layout::channels_last}) check_convolution(c, type, layout);
    }
  }
}

/// On such windows oneDNN 2.6 crashed with AMX.
TEST(CpuConvolution, WindowsInThePaddingAlone) {
  const ConvolutionCase c{{{2, 2}, {2, 3}, {1, 2}, {3, 3}, {1, 1}, 1}, {11, 35, 6, 5}, {30, 35, 2, 2}};
  for (const DType type : {DType::float32, DType::bfloat16}) check_convolution(c, type, Layout::channels_last);
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
        code.store(2, type, y.strides, code.compute(Op::add, code.load(0), code.operand(3, type, {0, 1, 0, 0}), type));
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

TEST(CpuEpilogue, LanesAlongTheBatch) {
  // A bias and tanh on a convolution, tanh alone on an input gradient; the number of images is no multiple of a tile's.
  const ConvolutionCase c{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2}, {45, 6, 7, 9}, {8, 3, 3, 3}};
  for (const Layout layout : {Layout::row_major, Layout::batch_last}) {
    for (const Op op : {Op::convolution, Op::convolution_input}) {
      Array x(DType::float32, c.x, layout);
      Array weight(DType::float32, c.weight);
      Array bias(DType::float32, {8});
      Array y(DType::float32, c.y(), layout);
      for (Array* array : {&x, &weight, &bias, &y}) array->randomise();
      const bool forward = op == Op::convolution;
      Array& result = forward ? y : x;
      std::vector<double> expected(result.values.size(), 0);
      if (forward) {
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = bias.values[i / 63 % 8];
      }
      each_product(c.window, c.x, c.weight, c.y(), [&](std::size_t at_x, std::size_t at_w, std::size_t at_y) {
        const double factor = forward ? x.values[at_x] : y.values[at_y];
        expected[forward ? at_y : at_x] += factor * weight.values[at_w];
      });
      for (double& value : expected) value = std::tanh(value / 16);
      Primitive primitive = step(op, c.window);
      EpilogueCode code(result.shape);
      std::int16_t value = code.load(0);
      if (forward) value = code.compute(Op::add, value, code.operand(3, DType::float32, {0, 1, 0, 0}));
      value = code.compute(Op::mul, value, code.number(1.0 / 16));
      code.store(2, DType::float32, result.strides, code.compute(Op::tanh, value));
      primitive.epilogue = code.group;
      const Ran ran = run(primitive, {forward ? &x : &y, &weight}, result, {&bias});
      EXPECT_EQ(ran.kernel, "batch lanes");
      expect_close(result, expected, 2e-6, ran.kernel);
    }
  }
}

// ---- results do not depend on the number of threads

TEST(CpuThreads, BlasLeavesOneDnnItsThreads) {
#if defined(RUSSET_THREADS_STD)
  GTEST_SKIP() << "libraries run on one thread here";
#endif
  const int before = base::thread_count();
  base::set_thread_count(3);
  Array a(DType::float64, {64, 64}), b(DType::float64, {64, 64}), c(DType::float64, {64, 64});
  EXPECT_EQ(run(step(Op::matmul), {&a, &b}, c).kernel, "blas");
  base::thread_count();
  const auto openmp_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  ASSERT_TRUE(openmp_threads);
  EXPECT_EQ(openmp_threads(), 3);
  base::set_thread_count(before);
}

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
}  // namespace russet::testing
