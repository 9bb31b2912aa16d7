// Contractions of the networks that russet is measured by: GFLOP/s of every implementation that accepts, in the order
// of the list, so the first of a case is the one that is used.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "device/cpu/implementation.h"
#include "device/cpu/operand.h"
#include "device/cpu/probe.h"
#include "device/cpu/target.h"

namespace russet {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

std::int64_t extent(const Operand& operand) {
  std::int64_t last = 1;
  for (int axis = 0; axis < operand.sizes.rank(); ++axis)
    last += (operand.sizes[axis] - 1) * operand.access.strides[axis];
  return last;
}

struct Memory {
  explicit Memory(std::size_t bytes) : bytes(bytes) {
    data = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096));
    std::fill_n(data, bytes, std::byte{0});
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::size_t bytes;
  std::byte* data;
};

void run(benchmark::State& state, const Primitive& primitive, const cpu::Implementation& implementation,
         double multiply_adds) {
  const cpu::Verdict verdict = implementation.judge(primitive);
  if (!verdict.accepted()) {
    state.SkipWithError(verdict.reason.c_str());
    return;
  }
  const auto kernel = verdict.make();
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::byte*> slots;
  std::vector<Operand> operands = primitive.inputs;
  operands.push_back(primitive.output);
  for (const Operand& operand : operands) {
    memory.push_back(
        std::make_unique<Memory>(static_cast<std::size_t>(extent(operand)) * size_of(operand.access.dtype)));
    slots.push_back(memory.back()->data);
  }
  const Memory scratch(kernel->scratch_bytes() + 64);
  const compile::Bindings bindings{slots.data(), nullptr, scratch.data};
  kernel->run(bindings);
  for (auto _ : state) kernel->run(bindings);
  const double operations = 2 * multiply_adds;
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations / 1e9, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  state.counters["scratch"] = static_cast<double>(kernel->scratch_bytes());
  state.SetLabel(kernel->name());
}

Operand operand(std::int32_t slot, DType type, const Shape& sizes, const Strides& strides) {
  return {{slot, type, 0, -1, strides}, sizes};
}

void add(const std::string& name, Primitive primitive, double multiply_adds) {
  for (const cpu::Implementation& implementation : cpu::implementations(primitive.op)) {
    if (!implementation.judge(primitive).accepted()) continue;
    std::string tag = implementation.name;
    std::replace(tag.begin(), tag.end(), ' ', '_');
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, tag).c_str(),
                                 [primitive, &implementation, multiply_adds](benchmark::State& state) {
                                   run(state, primitive, implementation, multiply_adds);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

struct ProductCase {
  const char* name;
  std::int64_t batch, m, k, n;
};

constexpr ProductCase products[] = {
    {"mlp.1", 0, 64, 1024, 512},           {"mlp.2", 0, 64, 512, 256},        {"mlp.3", 0, 64, 256, 10},
    {"lenet.1", 0, 64, 400, 120},          {"lenet.2", 0, 64, 120, 84},       {"lenet.3", 0, 64, 84, 10},
    {"bert.attention", 0, 1024, 768, 768}, {"bert.up", 0, 1024, 768, 3072},   {"bert.down", 0, 1024, 3072, 768},
    {"bert.scores", 96, 128, 64, 128},     {"bert.values", 96, 128, 128, 64}, {"resnet50.head", 0, 16, 2048, 1000},
};

/// A layer y = x w^T and both gradients.
void add_product(const ProductCase& c, DType type) {
  const auto matrix = [&](std::int32_t slot, std::int64_t rows, std::int64_t columns, bool transposed) {
    Shape sizes{rows, columns};
    Strides strides{transposed ? 1 : columns, transposed ? rows : 1};
    if (c.batch > 0) {
      sizes.insert(0, c.batch);
      strides.insert(0, rows * columns);
    }
    return operand(slot, type, sizes, strides);
  };
  const auto product = [&](const char* what, Operand a, Operand b, Operand result) {
    Primitive primitive;
    primitive.op = Op::matmul;
    primitive.inputs = {std::move(a), std::move(b)};
    primitive.output = std::move(result);
    add(fmt::format("{}/{}/{}", c.name, name_of(type), what), std::move(primitive),
        static_cast<double>(std::max<std::int64_t>(c.batch, 1) * c.m * c.k * c.n));
  };
  product("forward", matrix(0, c.m, c.k, false), matrix(1, c.k, c.n, true), matrix(2, c.m, c.n, false));
  product("input", matrix(0, c.m, c.n, false), matrix(1, c.n, c.k, false), matrix(2, c.m, c.k, false));
  product("weight", matrix(0, c.n, c.m, true), matrix(1, c.m, c.k, false), matrix(2, c.n, c.k, false));
}

struct ConvolutionCase {
  const char* name;
  std::int64_t batch, channels, size, outputs;
  std::int32_t kernel, stride, padding, groups;
};

constexpr ConvolutionCase convolutions[] = {
    {"lenet.conv1", 64, 1, 28, 6, 5, 1, 2, 1},
    {"lenet.conv2", 64, 6, 14, 16, 5, 1, 0, 1},
    {"few.8", 64, 8, 32, 8, 3, 1, 1, 1},
    {"few.16", 64, 16, 16, 16, 3, 1, 1, 1},
    {"few.17", 64, 17, 16, 17, 3, 1, 1, 1},
    {"few.32", 64, 32, 16, 32, 3, 1, 1, 1},
    {"cifar.stem", 128, 3, 32, 64, 3, 1, 1, 1},
    {"cifar.64", 128, 64, 32, 64, 3, 1, 1, 1},
    {"cifar.128", 128, 128, 16, 128, 3, 1, 1, 1},
    {"cifar.256", 128, 256, 8, 256, 3, 1, 1, 1},
    {"cifar.512", 128, 512, 4, 512, 3, 1, 1, 1},
    {"cifar.64-128/2", 128, 64, 32, 128, 3, 2, 1, 1},
    {"cifar.down", 128, 64, 32, 128, 1, 2, 0, 1},
    {"resnet50.stem", 16, 3, 224, 64, 7, 2, 3, 1},
    {"resnet50.64-64", 16, 64, 56, 64, 1, 1, 0, 1},
    {"resnet50.64-256", 16, 64, 56, 256, 1, 1, 0, 1},
    {"resnet50.3x3.64", 16, 64, 56, 64, 3, 1, 1, 1},
    {"resnet50.3x3.128", 16, 128, 28, 128, 3, 1, 1, 1},
    {"resnet50.3x3.256", 16, 256, 14, 256, 3, 1, 1, 1},
    {"resnet50.3x3.512", 16, 512, 7, 512, 3, 1, 1, 1},
    {"resnet50.1024-256", 16, 1024, 14, 256, 1, 1, 0, 1},
    {"resnet50.down", 16, 256, 56, 512, 1, 2, 0, 1},
    {"vit.patch", 4, 3, 224, 768, 16, 16, 0, 1},
    {"depthwise.3", 16, 128, 28, 128, 3, 1, 1, 128},
    {"depthwise.5", 16, 128, 28, 128, 5, 1, 2, 128},
    {"depthwise.7", 16, 128, 28, 128, 7, 1, 3, 128},
};

void add_convolution(const ConvolutionCase& c, DType type) {
  const std::int64_t out = ops::window_output(c.size, c.kernel, c.stride, c.padding, c.padding, 1);
  const Shape x{c.batch, c.channels, c.size, c.size};
  const Shape weight{c.outputs, c.channels / c.groups, c.kernel, c.kernel};
  const Shape y{c.batch, c.outputs, out, out};
  const auto convolution = [&](const char* what, Op op, const Shape& first, const Shape& second, const Shape& result) {
    Primitive primitive;
    primitive.op = op;
    primitive.attributes = ops::Window{
        {c.kernel, c.kernel}, {c.stride, c.stride}, {c.padding, c.padding}, {c.padding, c.padding}, {1, 1}, c.groups};
    primitive.inputs = {operand(0, type, first, contiguous_strides(first)),
                        operand(1, type, second, contiguous_strides(second))};
    primitive.output = operand(2, type, result, contiguous_strides(result));
    const Primitive plain = primitive;
    for (int i = 0; i < 2; ++i) {
      primitive.inputs[static_cast<std::size_t>(i)].access.strides = cpu::target().preferred_strides(plain, i);
    }
    primitive.output.access.strides = cpu::target().preferred_strides(plain, -1);
    add(fmt::format("{}/{}/{}", c.name, name_of(type), what), std::move(primitive),
        static_cast<double>(numel(y) * numel(weight) / c.outputs));
  };
  convolution("forward", Op::convolution, x, weight, y);
  convolution("input", Op::convolution_input, y, weight, x);
  convolution("weight", Op::convolution_weight, x, y, weight);
}

}  // namespace
}  // namespace russet

int main(int argc, char** argv) {
  using namespace russet;
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const auto& c : products) add_product(c, type);
    for (const auto& c : convolutions) add_convolution(c, type);
  }
  benchmark::Initialize(&argc, argv);
  const cpu::MachineLimits limits = cpu::measure_limits();
  fmt::print(stderr, "machine: {:.0f} GFLOP/s float32, {:.0f} bfloat16, {:.1f} GB/s copied\n",
             limits.float32_rate / 1e9, limits.bfloat16_rate / 1e9, limits.memory_bandwidth / 1e9);
  benchmark::RunSpecifiedBenchmarks();
}
