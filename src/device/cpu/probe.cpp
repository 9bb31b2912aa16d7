#include "device/cpu/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "base/parallel.h"
#include "device/cpu/gemm_tile.h"
#include "device/cpu/onednn_contraction.h"

namespace russet::cpu {
namespace {

using Clock = std::chrono::steady_clock;

/// The shortest time of `body`, in seconds, over a tenth of a second.
template <class Body>
double shortest(Body&& body) {
  const auto begin = Clock::now();
  double best = 1e9;
  for (int round = 0; round < 3 || Clock::now() - begin < std::chrono::milliseconds(100); ++round) {
    const auto start = Clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double float32_rate() {
  const RegisterTile<float> tile = best_tile<float>();
  constexpr int inner = 128;
  constexpr int repeats = 400;
  const auto rows = static_cast<std::size_t>(tile.rows);
  const auto columns = static_cast<std::size_t>(tile.columns);
  const std::vector<float> a(rows * inner, 1.0F);
  const std::vector<float> b(columns * inner, 1.0F);
  const double seconds = shortest([&] {
    base::parallel_region([&](int, int) {
      std::vector<float> c(rows * columns);
      for (int i = 0; i < repeats; ++i) {
        tile.run({inner, a.data(), 1, tile.rows, b.data(), tile.columns, c.data(), tile.columns, tile.rows,
                  tile.columns, false});
      }
    });
  });
  return 2.0 * tile.rows * tile.columns * inner * repeats * base::thread_count() / seconds;
}

double bfloat16_rate() {
  constexpr std::int64_t size = 1024;
  compile::Primitive product;
  product.op = ops::Op::matmul;
  const Shape shape{size, size};
  const auto operand = [&](std::int32_t slot) {
    return compile::Operand{{slot, DType::bfloat16, 0, -1, contiguous_strides(shape)}, shape};
  };
  product.inputs = {operand(0), operand(1)};
  product.output = operand(2);
  const Verdict verdict = judge_onednn_matmul(product);
  if (!verdict.accepted()) return 0;
  const KernelPtr kernel = verdict.make();
  std::vector<std::byte> memory(3 * size * size * sizeof(bfloat16));
  std::vector<std::byte> scratch(kernel->scratch_bytes());
  std::byte* const slots[] = {memory.data(), memory.data() + memory.size() / 3, memory.data() + memory.size() / 3 * 2};
  const double seconds = shortest([&] { kernel->run({slots, nullptr, scratch.data()}); });
  return 2.0 * size * size * size / seconds;
}

double memory_bandwidth() {
  constexpr std::int64_t count = std::int64_t{1} << 25;
  std::vector<float> from(count, 1.0F);
  std::vector<float> to(count);
  const double seconds = shortest([&] {
    base::parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
    });
  });
  return 2.0 * count * sizeof(float) / seconds;
}

}  // namespace

MachineLimits measure_limits() { return {float32_rate(), bfloat16_rate(), memory_bandwidth()}; }

}  // namespace russet::cpu
