// Groups as the compiler makes them, in GB/s of memory that they must touch, beside a copy of the same machine.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "device/cpu/group/group_kernel.h"

namespace {

using russet::DType;
using russet::Shape;
using russet::Strides;
using russet::compile::Extent;
using russet::compile::Group;
using russet::compile::Instruction;
using russet::ops::Op;
using Kind = Instruction::Kind;

/// A group with its memory: every access has a slot of its own.
struct Work {
  Group group;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::uint64_t> arguments{std::bit_cast<std::uint64_t>(0.5), 0};
  std::int64_t bytes = 0;  // that one run must read and write

  Work(Group::Kind kind, Shape space, int split) {
    group.kind = kind;
    group.space = std::move(space);
    group.split = split;
  }
  std::int16_t push(Instruction instruction) {
    group.code.push_back(instruction);
    return static_cast<std::int16_t>(group.code.size() - 1);
  }
  std::int16_t access(DType type, Strides strides) {
    std::int64_t elements = 1;
    std::int64_t touched = 1;
    for (int axis = 0; axis < strides.rank(); ++axis) {
      elements += (group.space[axis] - 1) * strides[axis];
      if (strides[axis] != 0) touched *= group.space[axis];
    }
    memory.emplace_back(static_cast<std::size_t>(elements) * size_of(type) + 64, std::byte{0});
    bytes += touched * static_cast<std::int64_t>(size_of(type));
    group.accesses.push_back({static_cast<std::int32_t>(memory.size() - 1), type, 0, -1, std::move(strides)});
    return static_cast<std::int16_t>(group.accesses.size() - 1);
  }
  std::int16_t load(DType type, Strides strides) {
    return push({.kind = Kind::load, .dtype = type, .access = access(type, std::move(strides))});
  }
  void store(std::int16_t value, Strides strides, Extent extent = Extent::full) {
    const DType type = group.code[static_cast<std::size_t>(value)].dtype;
    push({.kind = Kind::store,
          .dtype = type,
          .extent = extent,
          .inputs = {value, -1, -1},
          .access = access(type, std::move(strides))});
  }
  std::int16_t compute(Op op, DType type, std::int16_t a, std::int16_t b = -1, Extent extent = Extent::full) {
    return push({.kind = Kind::compute, .op = op, .dtype = type, .extent = extent, .inputs = {a, b, -1}});
  }
  std::int16_t constant(double value, DType type = DType::float32) {
    return push({.kind = Kind::constant, .dtype = type, .number = {value, 0}});
  }
  std::int16_t reduce(Op op, std::int16_t value) {
    return push({.kind = Kind::reduce,
                 .op = op,
                 .dtype = DType::float32,
                 .extent = Extent::reduced,
                 .inputs = {value, -1, -1}});
  }
};

void run(benchmark::State& state, Work& work) {
  const auto kernel = russet::cpu::make_group_kernel(work.group);
  std::vector<std::byte*> slots;
  for (auto& block : work.memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(block.data());
    slots.push_back(block.data() + (64 - address % 64) % 64);
  }
  std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  const russet::compile::Bindings bindings{slots.data(), work.arguments.data(),
                                           scratch.data() + (64 - address % 64) % 64};
  for (auto _ : state) kernel->run(bindings);
  state.SetBytesProcessed(state.iterations() * work.bytes);
}

/// The probe: copies 64 MiB.
void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

void saxpy(benchmark::State& state) {
  Work work(Group::Kind::elementwise, {state.range(0)}, 1);
  const auto x = work.load(DType::float32, {1});
  const auto y = work.load(DType::float32, {1});
  const auto a = work.push({.kind = Kind::scalar, .dtype = DType::float32, .argument = 0});
  work.store(work.compute(Op::add, DType::float32, work.compute(Op::mul, DType::float32, a, x), y), {1});
  run(state, work);
}

void gelu(benchmark::State& state) {
  Work work(Group::Kind::elementwise, {state.range(0)}, 1);
  const auto x = work.load(DType::float32, {1});
  work.store(work.compute(Op::mul, DType::float32, x, work.compute(Op::ndtr, DType::float32, x)), {1});
  run(state, work);
}

void unary(benchmark::State& state, Op op) {
  Work work(Group::Kind::elementwise, {1 << 16}, 1);
  work.store(work.compute(op, DType::float32, work.load(DType::float32, {1})), {1});
  run(state, work);
}

void add_bfloat16(benchmark::State& state) {
  Work work(Group::Kind::elementwise, {state.range(0)}, 1);
  const auto x = work.load(DType::bfloat16, {1});
  work.store(work.compute(Op::add, DType::bfloat16, x, work.load(DType::bfloat16, {1})), {1});
  run(state, work);
}

void softmax(benchmark::State& state) {
  const std::int64_t columns = state.range(1);
  Work work(Group::Kind::row, {state.range(0), columns}, 1);
  const auto x = work.load(DType::float32, {columns, 1});
  const auto shifted = work.compute(Op::sub, DType::float32, x, work.reduce(Op::amax, x));
  const auto e = work.compute(Op::exp, DType::float32, shifted);
  work.store(work.compute(Op::div, DType::float32, e, work.reduce(Op::sum, e)), {columns, 1});
  run(state, work);
}

void layer_norm(benchmark::State& state) {
  const std::int64_t columns = state.range(1);
  Work work(Group::Kind::row, {state.range(0), columns}, 1);
  const auto f = DType::float32;
  const auto x = work.load(f, {columns, 1});
  const auto n = work.constant(1.0 / static_cast<double>(columns));
  const auto mean = work.compute(Op::mul, f, work.reduce(Op::sum, x), n, Extent::reduced);
  const auto d = work.compute(Op::sub, f, x, mean);
  const auto squares = work.reduce(Op::sum, work.compute(Op::mul, f, d, d));
  const auto variance = work.compute(Op::mul, f, squares, n, Extent::reduced);
  const auto r = work.compute(Op::rsqrt, f, work.compute(Op::add, f, variance, work.constant(1e-5), Extent::reduced),
                              -1, Extent::reduced);
  const auto scaled = work.compute(Op::mul, f, work.compute(Op::mul, f, d, r), work.load(f, {0, 1}));
  work.store(work.compute(Op::add, f, scaled, work.load(f, {0, 1})), {columns, 1});
  run(state, work);
}

void column_sum(benchmark::State& state) {
  const std::int64_t columns = state.range(1);
  Work work(Group::Kind::column, {state.range(0), columns}, 1);
  work.store(work.reduce(Op::sum, work.load(DType::float32, {columns, 1})), {0, 1}, Extent::reduced);
  run(state, work);
}

void total(benchmark::State& state) {
  Work work(Group::Kind::row, {state.range(0)}, 0);
  work.store(work.reduce(Op::sum, work.load(DType::float32, {1})), {0}, Extent::reduced);
  run(state, work);
}

/// Batch statistics: mean over batch and space of each channel.
void channel_sums(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::int64_t c = state.range(1);
  const std::int64_t hw = state.range(2);
  Work work(Group::Kind::row, {c, n, hw}, 1);
  const auto x = work.load(DType::float32, {hw, c * hw, 1});
  const auto sum = work.reduce(Op::sum, x);
  const auto squares = work.reduce(Op::sum, work.compute(Op::mul, DType::float32, x, x));
  work.store(sum, {1, 0, 0}, Extent::reduced);
  work.store(squares, {1, 0, 0}, Extent::reduced);
  run(state, work);
}

void channel_scale(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::int64_t c = state.range(1);
  const std::int64_t hw = state.range(2);
  Work work(Group::Kind::elementwise, {n, c, hw}, 3);
  const auto x = work.load(DType::float32, {c * hw, hw, 1});
  const auto scaled = work.compute(Op::mul, DType::float32, x, work.load(DType::float32, {0, 1, 0}));
  const auto shifted = work.compute(Op::add, DType::float32, scaled, work.load(DType::float32, {0, 1, 0}));
  work.store(work.compute(Op::maximum, DType::float32, shifted, work.constant(0)), {c * hw, hw, 1});
  run(state, work);
}

void bias(benchmark::State& state) {
  const std::int64_t columns = state.range(1);
  Work work(Group::Kind::elementwise, {state.range(0), columns}, 2);
  const auto x = work.load(DType::float32, {columns, 1});
  work.store(work.compute(Op::add, DType::float32, x, work.load(DType::float32, {0, 1})), {columns, 1});
  run(state, work);
}

void transposed_copy(benchmark::State& state, DType type) {
  const std::int64_t rows = state.range(0);
  const std::int64_t columns = state.range(1);
  Work work(Group::Kind::elementwise, {rows, columns}, 2);
  work.store(work.load(type, {1, rows}), {columns, 1});
  run(state, work);
}

void dropout(benchmark::State& state) {
  Work work(Group::Kind::elementwise, {state.range(0)}, 1);
  work.group.accesses.push_back({-1, DType::int64, 0, -1, {1}});
  work.memory.emplace_back();
  const auto at = work.push({.kind = Kind::index, .dtype = DType::int64, .access = 0});
  const auto u = work.push(
      {.kind = Kind::random, .op = Op::uniform, .dtype = DType::float32, .inputs = {at, -1, -1}, .argument = 1});
  const auto keep = work.compute(Op::lt, DType::boolean, u, work.constant(0.9));
  const auto x = work.load(DType::float32, {1});
  const auto zero = work.constant(0);
  work.store(work.push({.kind = Kind::compute, .op = Op::where, .inputs = {keep, x, zero}}), {1});
  run(state, work);
}

BENCHMARK(copy)->Arg(64 << 20)->UseRealTime();
BENCHMARK(saxpy)->Arg(640)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();
BENCHMARK(gelu)->Arg(640)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();
BENCHMARK(add_bfloat16)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();
BENCHMARK(softmax)->Args({64, 10})->Args({8192, 128})->Args({2048, 1000})->UseRealTime();
BENCHMARK(layer_norm)->Args({4096, 768})->UseRealTime();
BENCHMARK(column_sum)->Args({64, 10})->Args({4096, 256})->UseRealTime();
BENCHMARK(total)->Arg(1 << 20)->UseRealTime();
BENCHMARK(channel_sums)->Args({128, 64, 1024})->Args({128, 512, 16})->UseRealTime();
BENCHMARK(channel_scale)->Args({128, 64, 1024})->Args({128, 512, 16})->UseRealTime();
BENCHMARK(bias)->Args({64, 10})->Args({4096, 10})->Args({4096, 256})->Args({1024, 1024})->UseRealTime();
BENCHMARK_CAPTURE(transposed_copy, float32, DType::float32)->Args({1024, 1024})->Args({4096, 1024})->UseRealTime();
BENCHMARK_CAPTURE(transposed_copy, bfloat16, DType::bfloat16)->Args({1024, 1024})->UseRealTime();
BENCHMARK(dropout)->Arg(1 << 20)->UseRealTime();
BENCHMARK_CAPTURE(unary, exp, Op::exp)->UseRealTime();
BENCHMARK_CAPTURE(unary, log, Op::log)->UseRealTime();
BENCHMARK_CAPTURE(unary, tanh, Op::tanh)->UseRealTime();
BENCHMARK_CAPTURE(unary, erf, Op::erf)->UseRealTime();
BENCHMARK_CAPTURE(unary, sigmoid, Op::sigmoid)->UseRealTime();
BENCHMARK_CAPTURE(unary, sqrt, Op::sqrt)->UseRealTime();
BENCHMARK_CAPTURE(unary, rsqrt, Op::rsqrt)->UseRealTime();
BENCHMARK_CAPTURE(unary, sin, Op::sin)->UseRealTime();
BENCHMARK_CAPTURE(unary, tan, Op::tan)->UseRealTime();
BENCHMARK_CAPTURE(unary, expm1, Op::expm1)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
