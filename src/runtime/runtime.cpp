// The public view of the engine.
#include <russet/runtime.h>

#include <russet/error.h>

#include "base/parallel.h"
#include "graph/counters.h"
#include "graph/recorder.h"
#include "runtime/engine.h"
#include "runtime/profiler.h"

namespace russet {

void flush() { graph::flush(); }
void mark() { graph::mark(); }

void in_one_plan(const std::function<void()>& work) {
  {
    const graph::Deferral deferral;
    work();
  }
  graph::mark();  // nothing if this is a part of another
}

void synchronize() {
  graph::Recorder& recorder = graph::Recorder::current();
  recorder.compute();
  for (runtime::Engine* engine : runtime::engines()) engine->synchronize();
  recorder.tell();
}

void set_memory_limit(std::optional<std::size_t> bytes) { runtime::set_memory_limit(bytes); }
void set_memory_limit(std::optional<std::size_t> bytes, Device device) {
  runtime::engine_of(device).memory().set_limit(bytes);
}
std::optional<std::size_t> memory_limit(Device device) { return runtime::engine_of(device).memory().limit(); }
std::size_t memory_refused(Device device) { return runtime::engine_of(device).memory().refused(); }

void set_num_threads(int count) { base::set_thread_count(count); }
int get_num_threads() { return base::thread_count(); }

Counters counters() {
  const graph::EngineCounters& engine = graph::engine_counters();
  Counters result;
  result.plans_compiled = engine.plans_compiled.load();
  result.cache_hits = engine.cache_hits.load();
  result.nodes_recorded = engine.nodes_recorded.load() + graph::Recorder::current().uncounted();
  result.kernels_run = engine.kernels_run.load();
  result.bytes_moved = engine.bytes_moved.load();
  result.arena_bytes = engine.arena_bytes.load();
  result.allocations = engine.allocations.load();
  result.fallbacks = engine.fallbacks.load();
  result.cached_plans = engine.cached_plans.load();
  result.cached_plan_bytes = engine.cached_plan_bytes.load();
  result.flush_ns = engine.flush_ns.load();
  return result;
}

std::string why_compiled() {
  std::string reason;
  for (const runtime::Engine* engine : runtime::engines()) {
    if (std::string found = engine->why_compiled(); !found.empty()) reason = std::move(found);
  }
  return reason;
}

void plan_null_as(Device device, std::string_view chip) {
  runtime::engine_of(Device(DeviceType::null)).set_target(runtime::require_planner(device, chip).target());
}

void start_profile() { runtime::Profiler::activate(std::make_shared<runtime::Profiler>()); }

Profile finish_profile() {
  const std::shared_ptr<runtime::Profiler> profiler = runtime::Profiler::active();
  runtime::Profiler::activate(nullptr);
  Profile result;
  if (!profiler) return result;
  result.chrome_trace = profiler->chrome_trace();
  for (const runtime::StepTiming& record : profiler->records()) {
    result.steps.push_back(
        {record.name, record.detail, record.start_us, record.duration_us, record.bytes, record.operations});
  }
  return result;
}

void observe_plans(Device device, std::function<void(const PlanSummary&)> observer) {
  runtime::Engine& engine = runtime::engine_of(device);
  if (!observer) return engine.set_observer(nullptr);
  engine.set_observer([observer = std::move(observer)](const compile::Plan& plan) {
    PlanSummary summary;
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      const compile::Step& step = plan.program.steps[i];
      summary.steps.push_back({plan.kernels[i]->name(), runtime::describe(step), 0, 0, plan.step_bytes[i],
                               compile::operations_of(step), plan.kernels[i]->launches(), compile::factors_of(step)});
    }
    summary.arena_bytes = plan.program.arena_bytes;
    summary.output_bytes = plan.output_bytes;
    observer(summary);
  });
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> result;
  for (const DeviceType type :
       {DeviceType::cpu, DeviceType::mps, DeviceType::cuda, DeviceType::reference, DeviceType::null}) {
    DeviceInfo info;
    info.device = Device(type);
    if (const runtime::DeviceDriver* driver = runtime::driver_of(type)) {
      const runtime::DeviceProperties properties = driver->properties();
      info.available = true;
      info.name = properties.name;
      info.dtypes = properties.dtypes;
      info.cores = properties.cores;
      info.memory_bytes = properties.memory_bytes;
      info.instruction_sets = properties.instruction_sets;
      info.libraries = driver->libraries();
    } else {
      info.reason = runtime::unavailable_reason(type);
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::size_t memory_in_use(Device device) { return runtime::engine_of(device).memory().in_use(); }
std::size_t peak_memory(Device device) { return runtime::engine_of(device).memory().peak(); }
void reset_peak_memory(Device device) {
  runtime::Engine& engine = runtime::engine_of(device);
  engine.synchronize();
  engine.memory().drop_free();
  engine.memory().reset_peak();
}

}  // namespace russet
