#pragma once
// Engine: the executor of one device: finds or makes the plan for a flush's work, binds memory, and replays.
#include <russet/runtime.h>

#include "base/bounded_cache.h"
#include "compile/build.h"
#include "compile/plan.h"
#include "graph/executor.h"
#include "runtime/memory.h"

namespace russet::runtime {

struct HashOfKey {
  std::size_t operator()(const compile::Key& key) const { return key.hash(); }
};
/// Plans by the structure of the work.
using PlanCache = base::BoundedCache<compile::Key, std::shared_ptr<const compile::Plan>, HashOfKey>;

class Engine final : public graph::Executor {
 public:
  explicit Engine(DeviceDriver& driver);

  void execute(graph::Work& work) override;
  Ref<graph::Buffer> allocate(Device device, std::size_t bytes) override;
  void upload(graph::Buffer& target, std::span<const std::byte> bytes) override;
  void download(const graph::Buffer& source, std::size_t offset, std::span<std::byte> bytes) override;
  Ref<graph::Buffer> borrow(Device device, const Ref<graph::Buffer>& memory) override;
  bool has_attention(DType dtype) const override { return target_->has_attention(dtype); }
  void synchronize() override { driver_.synchronize(); }

  MemoryPool& memory() { return memory_; }
  /// Compiles for another device's target from now on (the null device plans for others).
  void set_target(const compile::Target& target) { target_ = &target; }
  /// Called with each plan before it runs: `russet plan` adds up what it sees.
  void set_observer(std::function<void(const compile::Plan&)> observer) { observer_ = std::move(observer); }
  const std::string& last_reason() const { return reason_; }

 private:
  class BorrowedBuffer;
  std::shared_ptr<const compile::Plan> plan_for(const graph::Work& work);
  std::shared_ptr<const compile::Plan> make_plan(const graph::Work& work, std::uint64_t environment);
  void bind(const graph::Work& work, const compile::Plan& plan);
  void bind_outputs(const graph::Work& work, const compile::Plan& plan);
  void run(const compile::Plan& plan);
  /// Tells a device that checks lifetimes which values begin with a step.
  void begin_values(const compile::Plan& plan, std::size_t step, std::byte* arena);
  void fail(const compile::Plan& plan, const std::string& error);
  void publish(const graph::Work& work, const compile::Plan& plan);

  DeviceDriver& driver_;
  const compile::Target* target_;
  std::function<void(const compile::Plan&)> observer_;
  MemoryPool memory_;
  PlanCache cache_;
  std::string reason_;
  // Scratch of execute(), kept so that a replay allocates nothing.
  std::vector<std::byte*> slots_;
  std::vector<std::uint64_t> arguments_;
  std::vector<Ref<graph::Buffer>> outputs_;
  std::vector<graph::Node*> output_nodes_;
  std::vector<graph::Node*> leaf_nodes_;
  std::vector<graph::NodeRef> published_;
};

/// The engine of a device; made on first use. Throws DeviceError that says why there is none.
Engine& engine_of(Device device);

}  // namespace russet::runtime
