// Host costs: recording a node, and what a replay does besides running its kernels. docs/benchmarks.md says what they
// may be.
#include <benchmark/benchmark.h>
#include <russet/russet.h>
#include <russet/train/workload.h>

#include <chrono>
#include <memory>
#include <utility>

#include "compile/step.h"
#include "runtime/device.h"
#include "runtime/engine.h"

namespace {

using russet::Device;
using russet::DeviceType;
using russet::Tensor;
using russet::train::Workbench;

/// The CPU's kernels with nothing in them: they are made and bound as ever, and running one returns at once.
class HollowTarget final : public russet::compile::Target {
 public:
  class Kernel final : public russet::compile::Kernel {
   public:
    explicit Kernel(std::unique_ptr<russet::compile::Kernel> kernel) : kernel_(std::move(kernel)) {}
    void run(const russet::compile::Bindings& bindings) const override { benchmark::DoNotOptimize(&bindings); }
    std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
    std::string name() const override { return kernel_->name(); }

   private:
    std::unique_ptr<russet::compile::Kernel> kernel_;
  };

  std::unique_ptr<russet::compile::Kernel> compile(const russet::compile::Step& step) const override {
    return std::make_unique<Kernel>(cpu_.compile(step));
  }
  bool runs_groups() const override { return cpu_.runs_groups(); }
  russet::compile::Sharing sharing(const russet::compile::Step& step) const override { return cpu_.sharing(step); }
  russet::compile::BundleLimits bundle_limits() const override { return cpu_.bundle_limits(); }
  std::int64_t longest_row() const override { return cpu_.longest_row(); }
  bool accepts_epilogue(const russet::compile::Primitive& p) const override { return cpu_.accepts_epilogue(p); }
  russet::Strides preferred_strides(const russet::compile::Primitive& p, int operand) const override {
    return cpu_.preferred_strides(p, operand);
  }
  std::uint64_t key() const override { return cpu_.key(); }

 private:
  const russet::compile::Target& cpu_ = russet::runtime::driver_of(DeviceType::cpu)->target();
};

/// Values do not matter while this lives, only what happens around the kernels.
class Hollow {
 public:
  Hollow() {
    static const HollowTarget target;
    russet::runtime::engine_of(Device(DeviceType::cpu)).set_target(target);
  }
  ~Hollow() {
    russet::runtime::engine_of(Device(DeviceType::cpu))
        .set_target(russet::runtime::driver_of(DeviceType::cpu)->target());
  }
  Hollow(const Hollow&) = delete;
  Hollow& operator=(const Hollow&) = delete;
};

/// One node: recorded, wrapped in a tensor and dropped again, in chains of 100 as a small model records.
void record_add(benchmark::State& state) {
  constexpr std::int64_t chain = 100;
  const bool taped = state.range(0) != 0;
  const Tensor x = russet::zeros({32, 64});
  Tensor y = russet::zeros({32, 64});
  russet::flush();
  y.requires_grad_(taped);
  for (auto _ : state) {
    Tensor z = x;
    for (std::int64_t i = 0; i < chain; ++i) z = z + y;
    benchmark::DoNotOptimize(z);
  }
  state.SetItemsProcessed(state.iterations() * chain);
}
BENCHMARK(record_add)->ArgName("taped")->Arg(0)->Arg(1);

enum class Part { recording, replay };

/// A training step of LeNet-5, batch 64, without its kernels: `recording` is what happens outside of flushes (forward,
/// tape, gradient rules, optimizer), `replay` what happens inside (collecting, the key, binding, launching, settling).
void lenet5_step(benchmark::State& state, Part part) {
  using Clock = std::chrono::steady_clock;
  russet::train::Workload workload = russet::train::benchmark_workload("lenet5");
  Workbench bench(workload, Device(DeviceType::cpu));
  russet::synchronize();
  const Hollow hollow;
  for (int i = 0; i < 20; ++i) bench.train_step();
  const russet::Counters before = russet::counters();
  for (auto _ : state) {
    const std::uint64_t flushed = russet::counters().flush_ns;
    const auto start = Clock::now();
    bench.train_step();
    const std::chrono::duration<double> whole = Clock::now() - start;
    const double inside = static_cast<double>(russet::counters().flush_ns - flushed) * 1e-9;
    state.SetIterationTime(part == Part::replay ? inside : whole.count() - inside);
  }
  const russet::Counters after = russet::counters();
  const auto steps = static_cast<double>(state.iterations());
  const double nodes = static_cast<double>(after.nodes_recorded - before.nodes_recorded) / steps;
  state.counters["nodes"] = nodes;
  state.counters["kernels"] = static_cast<double>(after.kernels_run - before.kernels_run) / steps;
  state.counters["compiled"] = static_cast<double>(after.plans_compiled - before.plans_compiled);
  if (part == Part::recording) {
    state.counters["per_node"] =
        benchmark::Counter(nodes * steps, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  }
}
BENCHMARK_CAPTURE(lenet5_step, recording, Part::recording)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lenet5_step, replay, Part::replay)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
