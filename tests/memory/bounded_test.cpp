// A long run with many batch sizes: memory and caches stay bounded, and the cache is hit.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <algorithm>
#include <cmath>

#include "memory/process.h"

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};
constexpr std::size_t MiB = std::size_t{1} << 20;

/// Waking other threads takes longer than the steps here.
class OneThread {
 public:
  OneThread() { set_num_threads(1); }
  ~OneThread() { set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = get_num_threads();
};

TEST(Bounded, TenThousandStepsWithFiftyBatchSizes) {
  constexpr int steps = 10'000;
  constexpr std::int64_t sizes = 50;
  const OneThread one_thread;
  nn::Linear first(12, 16);
  nn::Linear second(16, 4);
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& parameter : second.parameters()) parameters.push_back(parameter);
  optim::SGD optimizer(parameters, {.lr = 0.05, .momentum = 0.9});
  const Tensor data = randn({sizes, 12});
  const Tensor labels = remainder(arange(sizes), 4);
  const auto step = [&](int number) {
    // A multiplier that shares no factor with the number of sizes: each comes once in every round, in mixed order.
    const std::int64_t batch = 1 + number * 37 % sizes;
    const Tensor logits = second(dropout(relu(first(data.slice(0, {0, batch}))), 0.1, true));
    const Tensor loss = cross_entropy(logits, labels.slice(0, {0, batch}));
    optimizer.set_lr(0.05 / (1 + number));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (number % 100 == 0) {
      EXPECT_TRUE(std::isfinite(loss.item<float>()));
    }
  };
  constexpr int warm = 1000;
  for (int i = 0; i < warm; ++i) step(i);
  const Counters before = counters();
  const std::size_t in_use = memory_in_use(cpu);
  const std::size_t resident = process_memory().resident;
  for (int i = warm; i < steps; ++i) step(i);
  const Counters after = counters();
  EXPECT_EQ(after.plans_compiled, before.plans_compiled) << why_compiled();
  EXPECT_EQ(after.cached_plans, before.cached_plans);
  EXPECT_EQ(after.cached_plan_bytes, before.cached_plan_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_LE(memory_in_use(cpu), in_use);
  EXPECT_LE(process_memory().resident, resident + 2 * MiB);
  // At least two flushes a step, all of them served by the cache.
  EXPECT_GE(after.cache_hits - before.cache_hits, 2ULL * (steps - warm));
}

TEST(Bounded, PlansThatNobodyUsesAgainGo) {
  constexpr std::int64_t shapes = 14'000;
  const OneThread one_thread;
  const Tensor data = randn({shapes});
  const auto run = [&](std::int64_t size) {
    const Tensor x = data.slice(0, {0, size});
    return sum(exp(x) * x).item<float>();
  };
  std::size_t most = 0;
  std::size_t resident = 0;
  for (std::int64_t size = 1; size <= shapes; ++size) {
    run(size);
    most = std::max<std::size_t>(most, counters().cached_plan_bytes);
    if (size == 10'000) resident = process_memory().resident;
  }
  const std::uint64_t plans = counters().cached_plans;
  EXPECT_GE(plans, 256U);
  EXPECT_LT(plans, static_cast<std::uint64_t>(shapes));
  EXPECT_LE(most, 64 * MiB);
  EXPECT_LE(process_memory().resident, resident + 2 * MiB);
  // The last one is still there, the first one is not.
  const std::uint64_t compiled = counters().plans_compiled;
  run(shapes);
  EXPECT_EQ(counters().plans_compiled, compiled);
  run(1);
  EXPECT_EQ(counters().plans_compiled, compiled + 1);
}

}  // namespace
}  // namespace russet
