// The devices of this build, and the public view of the engine.
#include <fmt/format.h>
#include <russet/error.h>
#include <russet/runtime.h>

#include <map>

#include "base/parallel.h"
#include "graph/counters.h"
#include "graph/recorder.h"
#include "runtime/engine.h"
#include "runtime/profiler.h"

namespace russet::runtime {
namespace {

struct Registry {
  std::map<DeviceType, std::unique_ptr<DeviceDriver>> drivers;
  std::map<DeviceType, std::string> reasons;
  std::map<DeviceType, std::unique_ptr<Engine>> engines;
  std::mutex mutex;
};

/// Never destroyed: buffers in static tensors give their memory back after main().
Registry& registry() {
  static auto* devices = new Registry;
  return *devices;
}

}  // namespace

void register_device(DeviceType type, std::unique_ptr<DeviceDriver> driver) {
  registry().drivers[type] = std::move(driver);
}

void register_unavailable(DeviceType type, std::string reason) { registry().reasons[type] = std::move(reason); }

DeviceDriver* driver_of(DeviceType type) {
  const auto found = registry().drivers.find(type);
  return found == registry().drivers.end() ? nullptr : found->second.get();
}

std::string unavailable_reason(DeviceType type) {
  const auto found = registry().reasons.find(type);
  return found == registry().reasons.end() ? "this build does not have it" : found->second;
}

Engine& engine_of(Device device) {
  Registry& devices = registry();
  const std::lock_guard lock(devices.mutex);
  std::unique_ptr<Engine>& engine = devices.engines[device.type];
  if (!engine) {
    DeviceDriver* driver = driver_of(device.type);
    if (!driver || device.index != 0) {
      throw DeviceError(fmt::format("the device {} is not available: {}. `russet devices` lists what there is.",
                                    to_string(device), unavailable_reason(device.type)));
    }
    engine = std::make_unique<Engine>(*driver);
  }
  return *engine;
}

}  // namespace russet::runtime

namespace russet::graph {

Executor& executor_of(Device device) { return runtime::engine_of(device); }

}  // namespace russet::graph

namespace russet {
namespace {

std::unique_ptr<runtime::Profiler>& profile() {
  static std::unique_ptr<runtime::Profiler> current;
  return current;
}

}  // namespace

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
  graph::flush();
  for (auto& [type, engine] : runtime::registry().engines) {
    if (engine) engine->synchronize();
  }
}

void set_memory_limit(std::optional<std::size_t> bytes) {
  for (const auto& [type, driver] : runtime::registry().drivers)
    runtime::engine_of(Device(type)).memory().set_limit(bytes);
}

void set_num_threads(int count) { base::set_thread_count(count); }
int get_num_threads() { return base::thread_count(); }

Counters counters() {
  const graph::EngineCounters& engine = graph::engine_counters();
  Counters result;
  result.plans_compiled = engine.plans_compiled.load();
  result.cache_hits = engine.cache_hits.load();
  result.nodes_recorded = engine.nodes_recorded.load() + graph::Recorder::current().uncounted();
  result.nodes_dropped = engine.nodes_dropped.load();
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
  for (auto& [type, engine] : runtime::registry().engines) {
    if (engine && !engine->last_reason().empty()) reason = engine->last_reason();
  }
  return reason;
}

void plan_null_as(Device device) {
  runtime::DeviceDriver* driver = runtime::driver_of(device.type);
  if (!driver)
    throw DeviceError(
        fmt::format("the device {} is not available: {}", to_string(device), runtime::unavailable_reason(device.type)));
  runtime::engine_of(Device(DeviceType::null)).set_target(driver->target());
}

void start_profile() {
  profile() = std::make_unique<runtime::Profiler>();
  runtime::Profiler::activate(profile().get());
}

Profile finish_profile() {
  runtime::Profiler::activate(nullptr);
  Profile result;
  if (!profile()) return result;
  result.chrome_trace = profile()->chrome_trace();
  for (const runtime::StepRecord& record : profile()->records()) {
    result.steps.push_back(
        {record.name, record.detail, record.start_us, record.duration_us, record.bytes, record.operations});
  }
  profile().reset();
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
                               compile::operations_of(step), plan.kernels[i]->launches()});
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
