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

constexpr std::size_t cached_plans = 512;

}  // namespace

std::shared_ptr<const compile::Plan> PlanCache::find(const graph::Work& work, std::uint64_t environment,
                                                     std::uint64_t hash) {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (!it->second->key.serves(work, environment)) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->plan;
  }
  return nullptr;
}

void PlanCache::add(const graph::Work& work, std::uint64_t environment, std::uint64_t hash,
                    std::shared_ptr<const compile::Plan> plan) {
  entries_.push_front({compile::Key(work, environment), std::move(plan), hash});
  by_hash_.emplace(hash, entries_.begin());
  if (entries_.size() <= cached_plans) return;
  const auto oldest = std::prev(entries_.end());
  const auto [first, last] = by_hash_.equal_range(oldest->hash);
  for (auto it = first; it != last; ++it) {
    if (it->second == oldest) {
      by_hash_.erase(it);
      break;
    }
  }
  entries_.erase(oldest);
}

std::string PlanCache::explain(const graph::Work& work, std::uint64_t environment) const {
  const Entry* nearest = nullptr;
  std::size_t longest = 0;
  for (const Entry& entry : entries_) {
    const std::size_t prefix = entry.key.common_prefix(work);
    if (!nearest || prefix > longest) {
      nearest = &entry;
      longest = prefix;
    }
  }
  return nearest ? nearest->key.difference(work, environment) : "it is the first plan";
}

std::shared_ptr<const compile::Plan> Engine::plan_for(const graph::Work& work) {
  const std::uint64_t environment = target_->key() * 31 + static_cast<std::uint64_t>(base::thread_count());
  const std::uint64_t hash = compile::Key::hash(work);
  if (auto plan = cache_.find(work, environment, hash)) {
    graph::engine_counters().cache_hits.fetch_add(1, std::memory_order_relaxed);
    return plan;
  }
  reason_ = cache_.explain(work, environment);
  const auto start = std::chrono::steady_clock::now();
  compile::Plan made = compile::make_plan(compile::build_program(work), *target_);
  for (std::size_t i = 0; i < work.entries.size(); ++i) {
    if (work.entries[i].output) made.output_entries.push_back(static_cast<std::int32_t>(i));
  }
  const auto plan = std::make_shared<const compile::Plan>(std::move(made));
  graph::engine_counters().plans_compiled.fetch_add(1, std::memory_order_relaxed);
  if (base::log_enabled("plans")) {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    base::log_line("plans", fmt::format("compiled {} nodes into {} steps in {:.1f} ms: {}", work.entries.size(),
                                        plan->program.steps.size(), elapsed.count(), reason_));
    if (base::log_enabled("steps")) base::log_line("steps", describe_steps(*plan));
  }
  cache_.add(work, environment, hash, plan);
  return plan;
}

void Engine::execute(graph::Work& work) {
  const std::shared_ptr<const compile::Plan> plan = plan_for(work);
  if (observer_) observer_(*plan);
  memory_.check(plan->output_bytes, plan->program.arena_bytes);
  bind(work, *plan, outputs_);
  try {
    if (driver_.runs()) run(*plan);
  } catch (const Error& error) {
    // What the plan may have written is lost; leaves that lent their memory among it.
    for (graph::Node* node : output_nodes_) node->fail(error.what());
    for (const compile::Output& output : plan->program.outputs) {
      if (output.donor >= 0) leaf_nodes_[static_cast<std::size_t>(output.donor)]->fail(error.what());
    }
    outputs_.clear();
    throw;
  }
  publish(work, *plan, outputs_);
}

void Engine::bind(const graph::Work& work, const compile::Plan& plan, std::vector<Ref<graph::Buffer>>& outputs) {
  outputs.clear();
  leaf_nodes_.clear();
  output_nodes_.clear();
  slots_.assign(plan.program.slots.size(), nullptr);
  for (const graph::Work::Entry& entry : work.entries) {
    if (entry.node->materialised()) leaf_nodes_.push_back(entry.node);
  }
  for (const std::int32_t entry : plan.output_entries) {
    output_nodes_.push_back(work.entries[static_cast<std::size_t>(entry)].node);
  }
  compile::collect_arguments(work, arguments_);
  outputs.resize(plan.program.outputs.size());
  std::byte* arena = memory_.arena(plan.program.arena_bytes);
  for (std::size_t i = 0; i < plan.program.slots.size(); ++i) {
    const compile::Slot& slot = plan.program.slots[i];
    const auto index = static_cast<std::size_t>(slot.index);
    switch (slot.kind) {
      case compile::Slot::Kind::leaf: slots_[i] = leaf_nodes_[index]->buffer()->data(); break;
      case compile::Slot::Kind::temporary: slots_[i] = arena + slot.offset; break;
      case compile::Slot::Kind::output: {
        const std::int32_t donor = plan.program.outputs[index].donor;
        outputs[index] = donor >= 0 ? leaf_nodes_[static_cast<std::size_t>(donor)]->buffer()
                                    : memory_.allocate(work.device, slot.bytes);
        slots_[i] = outputs[index]->data();
        break;
      }
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::int32_t donor = plan.program.outputs[i].donor;
    if (!outputs[i] && donor >= 0) outputs[i] = leaf_nodes_[static_cast<std::size_t>(donor)]->buffer();
  }
}

void Engine::run(const compile::Plan& plan) {
  const compile::Program& program = plan.program;
  std::byte* arena = memory_.arena(program.arena_bytes);
  static const base::Log log("run");  // the last line before a crash
  Profiler* profiler = Profiler::active();
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    if (log.enabled()) log("step {}: {} {}", i, plan.kernels[i]->name(), describe(program.steps[i]));
    const compile::Bindings bindings{slots_.data(), arguments_.data(), arena + program.scratch[i]};
    if (profiler) {
      profiler->step(plan, i, [&] { plan.kernels[i]->run(bindings); });
    } else {
      plan.kernels[i]->run(bindings);
    }
  }
  graph::EngineCounters& counters = graph::engine_counters();
  counters.kernels_run.fetch_add(plan.kernels.size(), std::memory_order_relaxed);
  counters.bytes_moved.fetch_add(plan.moved_bytes, std::memory_order_relaxed);
}

void Engine::publish(graph::Work& work, const compile::Plan& plan, std::vector<Ref<graph::Buffer>>& outputs) {
  // The plan's outputs cover the work's; those that the work does not want are given back at once. All nodes are
  // looked up before the first becomes a leaf: that may destroy others.
  std::vector<graph::NodeRef> nodes;
  nodes.reserve(outputs.size());
  for (const std::int32_t entry : plan.output_entries) {
    nodes.push_back(work.entries[static_cast<std::size_t>(entry)].output
                        ? graph::NodeRef(work.entries[static_cast<std::size_t>(entry)].node)
                        : graph::NodeRef());
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]) nodes[i]->materialise(std::move(outputs[i]));
  }
  outputs.clear();
}

Ref<graph::Buffer> Engine::allocate(Device device, std::size_t bytes) {
  memory_.check(bytes, 0);
  return memory_.allocate(device, bytes);
}

void Engine::upload(graph::Buffer& target, std::span<const std::byte> bytes) { driver_.upload(target.data(), bytes); }

void Engine::download(const graph::Buffer& source, std::size_t offset, std::span<std::byte> bytes) {
  driver_.download(bytes, source.data() + offset);
}

}  // namespace russet::runtime
