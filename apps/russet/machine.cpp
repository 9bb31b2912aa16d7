#include "machine.h"

#include <russet/autograd.h>
#include <russet/functional.h>

#include <algorithm>
#include <chrono>

namespace russet::app {
namespace {

/// The best of some repetitions that take about `seconds` together.
double best_time(double seconds, const std::function<void()>& work) {
  double best = time_of(work);  // compiles
  double spent = 0;
  for (int i = 0; i < 50 && (i < 2 || spent < seconds); ++i) {
    const double time = time_of(work);
    best = std::min(best, time);
    spent += time;
  }
  return best;
}

double product_rate(Device device, DType type) {
  double rate = 0;
  for (std::int64_t size = 64; size <= 2048; size *= 2) {
    const Tensor a = randn({size, size}, {DType::float32, device, false}).to(type);
    const Tensor b = randn({size, size}, {DType::float32, device, false}).to(type);
    Tensor c;
    const double time = best_time(0.1, [&] { c = matmul(a, b); });
    const auto n = static_cast<double>(size);
    rate = std::max(rate, 2 * n * n * n / std::max(time, 1e-9));
    if (time > 0.15) break;  // a larger one takes eight times as long
  }
  return rate;
}

double memory_rate(Device device) {
  double rate = 0;
  for (std::int64_t count = 1 << 14; count <= 1 << 25; count *= 8) {
    const Tensor x = zeros({count}, {DType::float32, device, false});
    const double time = best_time(0.1, [&] { x.add_(1.0); });
    rate = 8.0 * static_cast<double>(count) / std::max(time, 1e-9);
    if (time > 0.15) break;
  }
  return rate;
}

}  // namespace

double time_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MachineRate measure_machine(Device device, DType type) {
  const NoGrad no_grad;
  return {product_rate(device, type), memory_rate(device)};
}

double least_time(const StepInfo& step, const MachineRate& rate) {
  return std::max(step.operations / std::max(rate.operations_per_s, 1.0),
                  static_cast<double>(step.bytes) / std::max(rate.bytes_per_s, 1.0));
}

}  // namespace russet::app
