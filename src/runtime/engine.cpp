#include "runtime/engine.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <chrono>

#include "base/log.h"
#include "base/parallel.h"
#include "graph/counters.h"
#include "runtime/profiler.h"

namespace russet::runtime {
namespace {

constexpr std::size_t cached_bytes = std::size_t{64} << 20;
constexpr std::size_t cached_plans = 256;  // however large
constexpr std::size_t compared_plans = 64;

/// The first difference to the plan that agrees longest, of those that were used last.
std::string explain(const PlanCache& cache, const graph::Work& work, std::uint64_t environment) {
  const compile::Key* nearest = nullptr;
  std::size_t longest = 0;
  std::size_t seen = 0;
  for (const PlanCache::Entry& entry : cache) {
    if (++seen > compared_plans) break;
    const std::size_t prefix = entry.key.common_prefix(work);
    if (!nearest || prefix > longest) {
      nearest = &entry.key;
      longest = prefix;
    }
  }
  return nearest ? nearest->difference(work, environment) : "it is the first plan";
}

}  // namespace

Engine::Engine(DeviceDriver& driver)
    : driver_(driver), target_(&driver.target()), memory_(driver), cache_(cached_bytes, cached_plans) {}

std::shared_ptr<const compile::Plan> Engine::plan_for(const graph::Work& work) {
  const std::uint64_t environment = target_->key() * 31 + static_cast<std::uint64_t>(base::thread_count());
  const auto serves = [&](const compile::Key& key) { return key.serves(work, environment); };
  if (const auto* plan = cache_.find_where(compile::Key::hash(work), serves)) {
    graph::engine_counters().cache_hits.fetch_add(1, std::memory_order_relaxed);
    return *plan;
  }
  return make_plan(work, environment);
}

std::shared_ptr<const compile::Plan> Engine::make_plan(const graph::Work& work, std::uint64_t environment) {
  reason_ = explain(cache_, work, environment);
  const auto start = std::chrono::steady_clock::now();
  compile::Plan made = compile::make_plan(compile::build_program(work), *target_);
  for (std::size_t i = 0; i < work.entries.size(); ++i) {
    if (work.entries[i].output) made.output_entries.push_back(static_cast<std::int32_t>(i));
  }
  if (driver_.runs()) target_->prepare(made.kernels);
  const auto plan = std::make_shared<const compile::Plan>(std::move(made));
  graph::EngineCounters& counters = graph::engine_counters();
  counters.plans_compiled.fetch_add(1, std::memory_order_relaxed);
  if (base::log_enabled("plans")) {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    base::log_line("plans", fmt::format("compiled {} nodes into {} steps in {:.1f} ms: {}", work.entries.size(),
                                        plan->program.steps.size(), elapsed.count(), reason_));
    if (base::log_enabled("steps")) base::log_line("steps", describe_steps(*plan));
  }
  // Unsigned numbers wrap around, so a difference may be negative.
  const std::size_t plans = cache_.size();
  const std::size_t bytes = cache_.bytes();
  compile::Key key(work, environment);
  const std::size_t size = key.bytes() + plan->host_bytes;
  cache_.insert(std::move(key), plan, size);
  counters.cached_plans.fetch_add(cache_.size() - plans, std::memory_order_relaxed);
  counters.cached_plan_bytes.fetch_add(cache_.bytes() - bytes, std::memory_order_relaxed);
  return plan;
}

void Engine::execute(graph::Work& work) {
  const std::shared_ptr<const compile::Plan> plan = plan_for(work);
  if (observer_) observer_(*plan);
  memory_.check(plan->output_bytes, plan->program.arena_bytes);
  bind(work, *plan);
  try {
    if (driver_.runs()) {
      run(*plan);
      driver_.commit();
    }
  } catch (const std::exception& error) {
    fail(*plan, error.what());
    throw;
  }
  publish(work, *plan);
}

void Engine::bind(const graph::Work& work, const compile::Plan& plan) {
  leaf_nodes_.clear();
  output_nodes_.clear();
  for (const graph::Work::Entry& entry : work.entries) {
    if (entry.node->materialised()) leaf_nodes_.push_back(entry.node);
  }
  for (const std::int32_t entry : plan.output_entries) {
    output_nodes_.push_back(work.entries[static_cast<std::size_t>(entry)].node);
  }
  compile::collect_arguments(work, arguments_);
  outputs_.clear();
  outputs_.resize(plan.program.outputs.size());
  try {
    bind_outputs(work, plan);
  } catch (...) {
    outputs_.clear();  // what there was memory for is needed elsewhere
    throw;
  }
}

void Engine::bind_outputs(const graph::Work& work, const compile::Plan& plan) {
  const compile::Program& program = plan.program;
  slots_.assign(program.slots.size(), nullptr);
  std::byte* arena = memory_.arena(program.arena_bytes);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const std::int32_t donor = program.outputs[i].donor;
    if (donor >= 0) outputs_[i] = leaf_nodes_[static_cast<std::size_t>(donor)]->buffer();
  }
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    const compile::Slot& slot = program.slots[i];
    const auto index = static_cast<std::size_t>(slot.index);
    switch (slot.kind) {
      case compile::Slot::Kind::leaf: slots_[i] = leaf_nodes_[index]->buffer()->data(); break;
      case compile::Slot::Kind::temporary: slots_[i] = arena + slot.offset; break;
      case compile::Slot::Kind::output:
        if (!outputs_[index]) outputs_[index] = memory_.allocate(work.device, slot.bytes);
        slots_[i] = outputs_[index]->data();
        break;
    }
  }
}

void Engine::begin_values(const compile::Plan& plan, std::size_t step, std::byte* arena) {
  for (const std::int32_t born : plan.births[step]) {
    const auto slot = static_cast<std::size_t>(born);
    driver_.begin_value(slots_[slot], plan.program.slots[slot].bytes);
  }
  driver_.begin_value(arena + plan.program.scratch[step], plan.kernels[step]->scratch_bytes());
}

void Engine::run(const compile::Plan& plan) {
  const compile::Program& program = plan.program;
  std::byte* arena = memory_.arena(program.arena_bytes);
  static const base::Log log("run");  // the last line before a crash
  Profiler* profiler = Profiler::active();
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    if (driver_.tracks_values()) begin_values(plan, i, arena);
    if (log.enabled()) log("step {}: {} {}", i, plan.kernels[i]->name(), describe(program.steps[i]));
    const compile::Bindings bindings{slots_.data(), arguments_.data(), arena + program.scratch[i]};
    if (profiler) {
      profiler->step(plan, i, driver_, [&] { plan.kernels[i]->run(bindings); });
    } else {
      plan.kernels[i]->run(bindings);
    }
  }
  graph::EngineCounters& counters = graph::engine_counters();
  counters.kernels_run.fetch_add(plan.kernels.size(), std::memory_order_relaxed);
  counters.bytes_moved.fetch_add(plan.moved_bytes, std::memory_order_relaxed);
}

// What the plan may have written is lost; leaves that lent their memory among it.
void Engine::fail(const compile::Plan& plan, const std::string& error) {
  for (graph::Node* node : output_nodes_) node->fail(error);
  for (const compile::Output& output : plan.program.outputs) {
    if (output.donor >= 0) leaf_nodes_[static_cast<std::size_t>(output.donor)]->fail(error);
  }
  outputs_.clear();
}

void Engine::publish(const graph::Work& work, const compile::Plan& plan) {
  // The plan's outputs cover the work's; those that the work does not want are given back at once. All nodes are
  // looked up before the first becomes a leaf: that may destroy others.
  for (const std::int32_t entry : plan.output_entries) {
    const graph::Work::Entry& wanted = work.entries[static_cast<std::size_t>(entry)];
    published_.push_back(wanted.output ? graph::NodeRef(wanted.node) : graph::NodeRef());
  }
  for (std::size_t i = 0; i < published_.size(); ++i) {
    if (published_[i]) published_[i]->materialise(std::move(outputs_[i]));
  }
  published_.clear();
  outputs_.clear();
}

Ref<graph::Buffer> Engine::allocate(Device device, std::size_t bytes) {
  memory_.check(bytes, 0);
  return memory_.allocate(device, bytes);
}

class Engine::BorrowedBuffer final : public graph::Buffer {
 public:
  BorrowedBuffer(DeviceDriver& driver, Device device, const Ref<graph::Buffer>& lender)
      : Buffer(device, lender->data(), lender->bytes(), lender), driver_(driver) {}
  ~BorrowedBuffer() override { driver_.end_borrowing(take_lender()); }

 private:
  DeviceDriver& driver_;
};

Ref<graph::Buffer> Engine::borrow(Device device, const Ref<graph::Buffer>& memory) {
  // What comes back is what was lent.
  if (const Ref<graph::Buffer>& lender = memory->lender()) return lender->device() == device ? lender : nullptr;
  if (memory->pinned() || memory->bytes() <= page) return nullptr;
  DeviceDriver* const home = driver_of(memory->device().type);
  if (!home->lend(memory->data(), memory->bytes()) || !driver_.borrow(memory->data(), memory->bytes())) return nullptr;
  return Ref<graph::Buffer>(new BorrowedBuffer(driver_, device, memory));
}

void Engine::upload(graph::Buffer& target, std::span<const std::byte> bytes) { driver_.upload(target.data(), bytes); }

void Engine::download(const graph::Buffer& source, std::size_t offset, std::span<std::byte> bytes) {
  driver_.download(bytes, source.data() + offset);
}

}  // namespace russet::runtime
