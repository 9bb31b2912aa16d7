#pragma once
// Engine: the executor of one device: finds or makes the plan for a flush's work, binds memory, and replays.
#include <russet/runtime.h>

#include <mutex>

#include "base/bounded_cache.h"
#include "base/function_ref.h"
#include "base/lender.h"
#include "compile/build.h"
#include "compile/plan.h"
#include "graph/executor.h"
#include "runtime/memory.h"
#include "runtime/preparations.h"

namespace russet::runtime {

struct HashOfKey {
  std::size_t operator()(const compile::Key& key) const { return key.hash(); }
};
using PlanPtr = std::shared_ptr<const compile::Plan>;
/// Plans by the structure of the work.
using PlanCache = base::BoundedCache<compile::Key, PlanPtr, HashOfKey>;

/// Threads compile side by side; plans run one after another, for they share the arena.
class Engine final : public graph::Executor {
 public:
  explicit Engine(DeviceDriver& driver);
  ~Engine() override;

  void execute(const graph::Work& work, graph::Outcome& outcome) override;
  Ref<graph::Buffer> allocate(Device device, std::size_t bytes) override;
  void upload(graph::Buffer& target, std::span<const std::byte> bytes) override;
  graph::StagingMemory allocate_staging(std::size_t bytes) override { return driver_.allocate_staging(bytes); }
  void upload_staged(graph::Buffer& target, const graph::StagingMemory& source, std::size_t bytes) override;
  void finish_copies(const graph::StagingMemory& source) override { driver_.finish_copies(source); }
  void clear(graph::Buffer& target) override;
  void download(const graph::Buffer& source, std::size_t offset, std::span<std::byte> bytes) override;
  Ref<graph::Buffer> borrow(Device device, const Ref<graph::Buffer>& memory) override;
  bool runs() const override { return driver_.runs(); }
  std::shared_ptr<const std::byte> peek(const graph::Buffer& memory, std::size_t bytes) const override;
  bool has_attention(DType dtype) const override { return target().has_attention(dtype); }
  void synchronize() override { driver_.synchronize(); }

  MemoryPool& memory() { return memory_; }
  /// Compiles for another device's target from now on (the null device plans for others).
  void set_target(const compile::Target& target) { target_.store(&target); }
  /// Called with each plan before it runs: `russet plan` adds up what it sees.
  void set_observer(std::function<void(const compile::Plan&)> observer);
  /// Why the last plan was compiled: how it differs from the nearest of those that were used last. Empty if none was.
  std::string why_compiled() const;

 private:
  class BorrowedBuffer;
  struct Run;

  const compile::Target& target() const { return *target_.load(); }
  PlanPtr plan_for(const graph::Work& work);
  PlanPtr find_plan(const graph::Work& work, std::uint64_t environment, std::optional<std::size_t> room);
  PlanPtr make_plan(const graph::Work& work, std::uint64_t environment, std::optional<std::size_t> room);
  std::uint64_t environment() const;
  std::optional<std::size_t> room_for(const graph::Work& work) const;
  /// Changes the cache, and with it what the counters say of it. With mutex_ held.
  void change_cache(base::FunctionRef<void()> change);
  std::string explain(const compile::Key& key) const;
  void observe(const compile::Plan& plan);
  static void collect(const graph::Work& work, Run& run);
  static void find_sources(const compile::Plan& plan, Run& run);
  bool prepare(const compile::Plan& plan, Run& run, graph::Outcome& outcome);
  bool let_go_of_preparations();
  void take_memory(base::FunctionRef<void()> take);
  void replay(const graph::Work& work, const PlanPtr& plan, Run& run, graph::Outcome& outcome);
  bool bind(const PlanPtr& bound, const compile::Plan& plan, Run& run, graph::Outcome& outcome);
  void bind_memory(const compile::Plan& plan, Run& run);
  bool start(const PlanPtr& plan, Run& run, graph::Outcome& outcome);
  static const compile::Step& stopped_at(const compile::Plan& plan, const Run& run);
  /// Runs the plan's kernels, or has the device repeat what they launched.
  void launch(const PlanPtr& plan, Run& run);
  void run_steps(const compile::Plan& plan, Run& run);
  /// Tells a device that checks lifetimes which values begin with a step.
  void begin_values(const compile::Plan& plan, const Run& run);
  std::vector<std::int32_t> what_exceeds_memory(const compile::Plan& plan) const;
  void forget(const compile::Plan& plan);
  void note_interruption(const graph::Work& work, const compile::Plan& plan, Run& run, graph::Outcome& outcome);

  DeviceDriver& driver_;
  std::atomic<const compile::Target*> target_;
  MemoryPool memory_;
  base::Lender<Run> runs_;
  /// Held while a plan is bound and runs.
  std::mutex running_;
  /// Guards what follows; held for moments.
  mutable std::mutex mutex_;
  std::function<void(const compile::Plan&)> observer_;
  PlanCache cache_;
  Preparations preparations_;
  std::uint64_t last_compiled_ = 0;  // the hash of its key
};

/// The engine of a device; made on first use. Throws DeviceError that says why there is none.
Engine& engine_of(Device device);
/// Those that there are.
std::vector<Engine*> engines();
/// Of all engines, those to come as well.
void set_memory_limit(std::optional<std::size_t> bytes);

}  // namespace russet::runtime
