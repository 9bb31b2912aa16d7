#include "runtime/engine.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/parallel.h"
#include "compile/failure.h"
#include "graph/counters.h"
#include "runtime/profiler.h"

namespace russet::runtime {
namespace {

constexpr std::size_t cached_bytes = std::size_t{64} << 20;
constexpr std::size_t cached_plans = 256;  // however large
constexpr std::size_t compared_plans = 64;

/// The positions of a work's leaves among its nodes.
std::vector<std::int32_t> leaves_of(const graph::Work& work) {
  std::vector<std::int32_t> leaves;
  for (std::size_t i = 0; i < work.nodes.size(); ++i) {
    if (work.nodes[i].leaf) leaves.push_back(static_cast<std::int32_t>(i));
  }
  return leaves;
}

/// A little less than the room that there is, so that a plan fits still when a few small values more are in use.
std::optional<std::size_t> with_slack(std::optional<std::size_t> room) {
  return room ? std::optional(*room - *room / 256) : std::nullopt;
}

/// The last line before a crash.
const base::Log& run_log() {
  static const base::Log log("run");
  return log;
}

bool is_index_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const IndexError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

/// What one execution binds; kept, so that a replay allocates nothing.
struct Engine::Run {
  std::vector<std::byte*> slots;
  std::vector<std::uint64_t> arguments;
  Device device;
  std::vector<const graph::Node*> leaves;
  Preparations::Sources sources;
  Preparations::Results prepared;
  std::vector<Ref<graph::Buffer>> outputs;
  std::byte* arena = nullptr;
  std::size_t step = 0;  // that runs now
};

Engine::Engine(DeviceDriver& driver)
    : driver_(driver), target_(&driver.target()), memory_(driver), cache_(cached_bytes, cached_plans) {}

Engine::~Engine() = default;

void Engine::set_observer(std::function<void(const compile::Plan&)> observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

void Engine::observe(const compile::Plan& plan) {
  std::function<void(const compile::Plan&)> observer;
  {
    const std::lock_guard lock(mutex_);
    if (!observer_) return;
    observer = observer_;
  }
  observer(plan);
}

/// What plans depend on besides the work.
std::uint64_t Engine::environment() const {
  const std::optional<std::size_t> limit = memory_.limit();
  const std::uint64_t device = target().key() * 31 + static_cast<std::uint64_t>(base::thread_count());
  return device * 31 + (limit ? *limit + 1 : 0);
}

/// Bytes that a plan may take now, with what it keeps, if there is a limit. What is kept makes way.
std::optional<std::size_t> Engine::room_for(const graph::Work& work) const {
  if (!memory_.limit()) return std::nullopt;
  const auto outputs = std::ranges::count_if(work.nodes, &graph::WorkNode::output);
  std::optional<std::size_t> room = memory_.room(static_cast<std::size_t>(outputs));
  const std::lock_guard lock(mutex_);
  if (room) *room += preparations_.bytes();
  return room;
}

PlanPtr Engine::plan_for(const graph::Work& work) {
  const std::uint64_t environment = this->environment();
  const std::optional<std::size_t> room = room_for(work);
  PlanPtr found = find_plan(work, environment, room);
  return found ? found : make_plan(work, environment, room);
}

/// A plan that was made when there was more room, and does not fit now, makes way for one that does.
PlanPtr Engine::find_plan(const graph::Work& work, std::uint64_t environment, std::optional<std::size_t> room) {
  PlanPtr found;
  {
    const std::lock_guard lock(mutex_);
    const auto serves = [&](const compile::Key& key) { return key.serves(work, environment); };
    if (const PlanPtr* plan = cache_.find_where(compile::Key::hash(work), serves)) found = *plan;
  }
  if (found && room && found->total_bytes > *room && found->room.value_or(*room + 1) > *room) {
    forget(*found);
    return nullptr;
  }
  if (found) graph::engine_counters().cache_hits.fetch_add(1, std::memory_order_relaxed);
  return found;
}

void Engine::change_cache(base::FunctionRef<void()> change) {
  const std::size_t plans = cache_.size();
  const std::size_t bytes = cache_.bytes();
  change();
  // Unsigned numbers wrap around, so a difference may be negative.
  graph::EngineCounters& counters = graph::engine_counters();
  counters.cached_plans.fetch_add(cache_.size() - plans, std::memory_order_relaxed);
  counters.cached_plan_bytes.fetch_add(cache_.bytes() - bytes, std::memory_order_relaxed);
}

PlanPtr Engine::make_plan(const graph::Work& work, std::uint64_t environment, std::optional<std::size_t> room) {
  const auto start = std::chrono::steady_clock::now();
  const compile::Target& target = this->target();
  compile::Plan made = compile::make_plan(compile::build_program(work), target, with_slack(room));
  for (std::size_t i = 0; i < work.nodes.size(); ++i) {
    if (work.nodes[i].output) made.output_nodes.push_back(static_cast<std::int32_t>(i));
  }
  if (driver_.runs() && made.preparation) target.prepare(made.preparation->kernels);
  if (driver_.runs()) target.prepare(made.kernels);
  made.only_launches = std::ranges::all_of(made.kernels, [](const auto& kernel) { return kernel->only_launches(); });
  if (made.preparation) {
    const std::lock_guard lock(mutex_);
    made.preparation = preparations_.shared(made.preparation, environment);
  }
  PlanPtr plan = std::make_shared<const compile::Plan>(std::move(made));
  compile::Key key(work, environment);
  const std::size_t size = key.bytes() + plan->host_bytes;
  graph::engine_counters().plans_compiled.fetch_add(1, std::memory_order_relaxed);
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (base::log_enabled("plans")) reason = explain(key);
    last_compiled_ = key.hash();
    change_cache([&] { cache_.insert(std::move(key), plan, size); });
  }
  if (base::log_enabled("plans")) {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    base::log_line("plans", fmt::format("compiled {} nodes into {} steps in {:.1f} ms: {}", work.nodes.size(),
                                        plan->program.steps.size(), elapsed.count(), reason));
    if (base::log_enabled("steps")) base::log_line("steps", describe_steps(*plan));
  }
  return plan;
}

/// The first difference to the plan that agrees longest, of those that were used last.
std::string Engine::explain(const compile::Key& key) const {
  const compile::Key* nearest = nullptr;
  std::size_t longest = 0;
  std::size_t seen = 0;
  for (const PlanCache::Entry& entry : cache_) {
    if (entry.key == key) continue;
    if (++seen > compared_plans) break;
    const std::size_t prefix = key.common_prefix(entry.key);
    if (nearest && prefix <= longest) continue;
    nearest = &entry.key;
    longest = prefix;
  }
  return nearest ? key.difference(*nearest) : "it is the first plan";
}

std::string Engine::why_compiled() const {
  const std::lock_guard lock(mutex_);
  for (const PlanCache::Entry& entry : cache_) {
    if (entry.hash == last_compiled_) return explain(entry.key);
  }
  return "";
}

void Engine::execute(const graph::Work& work, graph::Outcome& outcome) {
  PlanPtr plan;
  try {
    plan = plan_for(work);
  } catch (compile::StepFailure& failure) {
    outcome.failure = failure.cause;
    outcome.culprits = std::move(failure.nodes);
    return;
  }
  const base::Lender<Run>::Loan run(runs_);
  const std::lock_guard lock(running_);
  collect(work, *run);
  if (!plan->preparation || prepare(*plan, *run, outcome)) {
    observe(*plan);
    replay(work, plan, *run, outcome);
  }
  run->outputs.clear();  // memory may be needed elsewhere
  run->prepared.clear();
}

void Engine::collect(const graph::Work& work, Run& run) {
  compile::collect_arguments(work, run.arguments);
  run.device = work.device;
  run.leaves.clear();
  for (const graph::WorkNode& node : work.nodes) {
    if (node.leaf) run.leaves.push_back(node.recorded);
  }
}

/// The values and arguments that the plan's preparation reads in this run.
void Engine::find_sources(const compile::Plan& plan, Run& run) {
  auto& [values, arguments] = run.sources;
  values.clear();
  arguments.clear();
  for (const compile::Slot& slot : plan.preparation->program.slots) {
    if (slot.kind != compile::Slot::Kind::leaf) continue;
    values.push_back(run.leaves[static_cast<std::size_t>(slot.index)]);
  }
  for (const std::int32_t argument : plan.prepared_arguments) {
    arguments.push_back(run.arguments[static_cast<std::size_t>(argument)]);
  }
}

/// Finds what the plan's preparation gave, or runs it. Returns whether that is there.
bool Engine::prepare(const compile::Plan& plan, Run& run, graph::Outcome& outcome) {
  find_sources(plan, run);
  {
    const std::lock_guard lock(mutex_);
    run.prepared = preparations_.find(*plan.preparation, run.sources);
  }
  if (!run.prepared.empty()) return true;
  observe(*plan.preparation);
  if (!bind(plan.preparation, plan, run, outcome)) return false;
  if (!start(plan.preparation, run, outcome)) {
    outcome.culprits = compile::nodes_of(plan.preparation->program, stopped_at(*plan.preparation, run));
    return false;
  }
  run.prepared = std::move(run.outputs);
  const std::lock_guard lock(mutex_);
  preparations_.keep(plan.preparation, run.sources, run.prepared);
  return true;
}

bool Engine::let_go_of_preparations() {
  const std::lock_guard lock(mutex_);
  return preparations_.clear();
}

/// Calls what takes memory, and calls it again if there is not enough until what is kept makes way.
void Engine::take_memory(base::FunctionRef<void()> take) {
  try {
    take();
  } catch (const OutOfMemoryError&) {
    if (!let_go_of_preparations()) throw;
    take();
  }
}

void Engine::replay(const graph::Work& work, const PlanPtr& shared, Run& run, graph::Outcome& outcome) {
  const compile::Plan& plan = *shared;
  if (!bind(shared, plan, run, outcome)) return;
  if (!start(shared, run, outcome)) return note_interruption(work, plan, run, outcome);
  for (std::size_t i = 0; i < plan.output_nodes.size(); ++i) {
    const auto node = static_cast<std::size_t>(plan.output_nodes[i]);
    // The plan's outputs cover the work's; those that the work does not want are given back at once.
    if (work.nodes[node].output) outcome.results[node] = std::move(run.outputs[i]);
  }
}

/// The step that failed; the last one if all were started.
const compile::Step& Engine::stopped_at(const compile::Plan& plan, const Run& run) {
  return plan.program.steps[std::min(run.step, plan.program.steps.size() - 1)];
}

/// Binds memory for a plan, or for the preparation of one. False if there is not enough; the outcome says so, and the
/// plan is forgotten.
bool Engine::bind(const PlanPtr& bound, const compile::Plan& plan, Run& run, graph::Outcome& outcome) {
  try {
    take_memory([&] { bind_memory(*bound, run); });
    return true;
  } catch (const OutOfMemoryError&) {
    outcome.failure = std::current_exception();
    outcome.culprits = what_exceeds_memory(*bound);
    forget(plan);
    return false;
  }
}

void Engine::bind_memory(const compile::Plan& plan, Run& run) {
  const compile::Program& program = plan.program;
  memory_.check(plan.output_bytes, program.arena_bytes);
  run.outputs.clear();
  run.outputs.resize(program.outputs.size());
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const std::int32_t donor = program.outputs[i].donor;
    if (donor >= 0) run.outputs[i] = run.leaves[static_cast<std::size_t>(donor)]->buffer();
  }
  run.arena = memory_.arena(program.arena_bytes, plan.output_bytes);
  run.slots.assign(program.slots.size(), nullptr);
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    const compile::Slot& slot = program.slots[i];
    const auto index = static_cast<std::size_t>(slot.index);
    switch (slot.kind) {
      case compile::Slot::Kind::leaf: run.slots[i] = run.leaves[index]->buffer()->data(); break;
      case compile::Slot::Kind::temporary: run.slots[i] = run.arena + slot.offset; break;
      case compile::Slot::Kind::prepared: run.slots[i] = run.prepared[index]->data(); break;
      case compile::Slot::Kind::output:
        if (!run.outputs[index]) run.outputs[index] = memory_.allocate(run.device, slot.bytes);
        run.slots[i] = run.outputs[index]->data();
        break;
    }
  }
}

/// Starts a plan that is bound. False if that failed; the outcome says why.
bool Engine::start(const PlanPtr& plan, Run& run, graph::Outcome& outcome) {
  if (!driver_.runs()) return true;
  try {
    launch(plan, run);
    driver_.commit();
    return true;
  } catch (...) {
    outcome.failure = std::current_exception();
    let_go_of_preparations();  // a device's failure may have lost them
    return false;
  }
}

void Engine::begin_values(const compile::Plan& plan, const Run& run) {
  for (const std::int32_t born : plan.births[run.step]) {
    const auto slot = static_cast<std::size_t>(born);
    driver_.begin_value(run.slots[slot], plan.program.slots[slot].bytes);
  }
  driver_.begin_value(run.arena + plan.program.scratch[run.step], plan.kernels[run.step]->scratch_bytes());
}

void Engine::launch(const PlanPtr& plan, Run& run) {
  const bool repeats = plan->only_launches && !driver_.tracks_values() && !Profiler::active() && !run_log().enabled();
  const PlanRun bound{plan, run.slots, run.arena, run.arguments};
  run.step = 0;
  if (repeats && driver_.repeat(bound)) {
    run.step = plan->kernels.size();
  } else {
    run_steps(*plan, run);
    if (repeats) driver_.remember(bound);
  }
  graph::EngineCounters& counters = graph::engine_counters();
  counters.kernels_run.fetch_add(plan->kernels.size(), std::memory_order_relaxed);
  counters.bytes_moved.fetch_add(plan->moved_bytes, std::memory_order_relaxed);
}

void Engine::run_steps(const compile::Plan& plan, Run& run) {
  const base::Log& log = run_log();
  const std::shared_ptr<Profiler> profiler = Profiler::active();
  for (run.step = 0; run.step < plan.kernels.size(); ++run.step) {
    const compile::Kernel& kernel = *plan.kernels[run.step];
    if (driver_.tracks_values()) begin_values(plan, run);
    if (log.enabled()) log("step {}: {} {}", run.step, kernel.name(), describe(plan.program.steps[run.step]));
    const compile::Bindings bindings{run.slots.data(), run.arguments.data(),
                                     run.arena + plan.program.scratch[run.step]};
    if (profiler) {
      profiler->step(plan, run.step, driver_, [&] { kernel.run(bindings); });
    } else {
      kernel.run(bindings);
    }
  }
}

/// Drops a plan that does not fit from the cache: the host memory that it holds may be needed by a smaller plan.
void Engine::forget(const compile::Plan& plan) {
  const std::lock_guard lock(mutex_);
  change_cache([&] { cache_.erase_if([&](const PlanCache::Entry& entry) { return entry.value.get() == &plan; }); });
}

/// The nodes computed by the first step at which the plan exceeds the memory that is left.
std::vector<std::int32_t> Engine::what_exceeds_memory(const compile::Plan& plan) const {
  if (plan.program.steps.empty()) return {};
  const std::size_t in_use = memory_.used();
  const std::size_t limit = memory_.limit().value_or(in_use);
  const std::size_t step = compile::step_beyond(plan.program, limit > in_use ? limit - in_use : 0);
  return compile::nodes_of(plan.program, plan.program.steps[step]);
}

void Engine::note_interruption(const graph::Work& work, const compile::Plan& plan, Run& run, graph::Outcome& outcome) {
  if (run.step == plan.kernels.size()) return;  // all ran, and what was started cannot be told apart
  try {
    driver_.commit();
  } catch (const Error&) {
    return;  // the device itself failed
  }
  const compile::Step& step = plan.program.steps[run.step];
  outcome.culprits = compile::nodes_of(plan.program, step);
  const bool began = !(is_index_error(outcome.failure) && compile::fails_before_writing(step));
  const compile::Remains remains = compile::remains_of(plan.program, run.step, began);
  for (const std::size_t output : remains.complete) {
    const auto node = static_cast<std::size_t>(plan.output_nodes[output]);
    if (work.nodes[node].output) outcome.results[node] = std::move(run.outputs[output]);
  }
  const std::vector<std::int32_t> leaves = leaves_of(work);
  for (const std::size_t leaf : remains.overwritten) outcome.overwritten.push_back(leaves[leaf]);
}

Ref<graph::Buffer> Engine::allocate(Device device, std::size_t bytes) {
  if (!memory_.has_room(bytes)) {
    // The arena that the last plan left may be larger than the next one needs.
    const std::lock_guard lock(running_);
    driver_.synchronize();
    memory_.drop_free();
  }
  Ref<graph::Buffer> memory;
  take_memory([&] {
    memory_.check(bytes, 0);
    memory = memory_.allocate(device, bytes);
  });
  return memory;
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

std::shared_ptr<const std::byte> Engine::peek(const graph::Buffer& memory, std::size_t bytes) const {
  return driver_.peek(memory.data(), bytes);
}

void Engine::upload(graph::Buffer& target, std::span<const std::byte> bytes) { driver_.upload(target.data(), bytes); }

void Engine::upload_staged(graph::Buffer& target, const graph::StagingMemory& source, std::size_t bytes) {
  driver_.upload_staged(target.data(), source, bytes);
}

void Engine::clear(graph::Buffer& target) { driver_.clear(target.data(), target.bytes()); }

void Engine::download(const graph::Buffer& source, std::size_t offset, std::span<std::byte> bytes) {
  driver_.download(bytes, source.data() + offset);
}

}  // namespace russet::runtime
