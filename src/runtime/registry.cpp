// The devices of this build, and an engine for each that is used.
#include <fmt/format.h>
#include <russet/error.h>

#include <array>
#include <map>

#include "runtime/engine.h"

namespace russet::runtime {
namespace {

/// What there is of one kind of device. Driver and engine are made when they are first asked for.
struct Entry {
  std::mutex mutex;  // while the driver is made
  DriverFactory make;
  std::string reason = "this build does not have it";
  std::unique_ptr<DeviceDriver> driver;
  PlannerFactory make_planner;
  std::map<std::string, std::unique_ptr<DeviceDriver>, std::less<>> planners;  // by chip
  std::atomic<Engine*> engine{nullptr};
};

/// Never destroyed: buffers in static tensors give their memory back after main().
Entry& entry_of(DeviceType type) {
  static auto* const entries = new std::array<Entry, device_types>;
  return (*entries)[static_cast<std::size_t>(type)];
}

struct CommonLimit {
  std::mutex mutex;
  std::optional<std::size_t> bytes;
};
CommonLimit& memory_limit() {
  static auto* const limit = new CommonLimit;
  return *limit;
}

/// With the entry's lock held.
DeviceDriver* driver_in(Entry& entry) {
  if (!entry.driver && entry.make) {
    try {
      entry.driver = entry.make();
    } catch (const DeviceError& error) {
      entry.reason = error.what();
    }
    entry.make = nullptr;
  }
  return entry.driver.get();
}

}  // namespace

void register_device(DeviceType type, DriverFactory make) {
  Entry& entry = entry_of(type);
  const std::lock_guard lock(entry.mutex);
  entry.make = std::move(make);
}

void register_planner(DeviceType type, PlannerFactory make) {
  Entry& entry = entry_of(type);
  const std::lock_guard lock(entry.mutex);
  entry.make_planner = std::move(make);
}

DeviceDriver* driver_of(DeviceType type) {
  Entry& entry = entry_of(type);
  const std::lock_guard lock(entry.mutex);
  return driver_in(entry);
}

std::string unavailable_reason(DeviceType type) {
  Entry& entry = entry_of(type);
  const std::lock_guard lock(entry.mutex);
  return driver_in(entry) == nullptr ? entry.reason : "";
}

DeviceDriver& require_driver(Device device) {
  DeviceDriver* const driver = driver_of(device.type);
  if (driver != nullptr && device.index == 0) return *driver;
  const std::string reason = driver == nullptr ? unavailable_reason(device.type) : "there is one of its kind, number 0";
  throw DeviceError(fmt::format("the device {} is not available: {}. `russet devices` lists what there is.",
                                to_string(device), reason));
}

DeviceDriver& require_planner(Device device, std::string_view chip) {
  Entry& entry = entry_of(device.type);
  {
    const std::lock_guard lock(entry.mutex);
    if (entry.make_planner && device.index == 0 && (!chip.empty() || driver_in(entry) == nullptr)) {
      const auto known = entry.planners.find(chip);
      if (known != entry.planners.end()) return *known->second;
      return *entry.planners.emplace(chip, entry.make_planner(chip)).first->second;
    }
  }
  if (!chip.empty())
    throw ValueError(fmt::format("of the device {} no chips are known; of mps and cuda they are", to_string(device)));
  return require_driver(device);
}

Engine& engine_of(Device device) {
  Entry& entry = entry_of(device.type);
  Engine* engine = entry.engine.load(std::memory_order_acquire);
  if (engine == nullptr || device.index != 0) {
    DeviceDriver& driver = require_driver(device);
    const std::lock_guard lock(entry.mutex);
    engine = entry.engine.load(std::memory_order_relaxed);
    if (engine == nullptr) {
      engine = new Engine(driver);
      const std::lock_guard limit_lock(memory_limit().mutex);
      engine->memory().set_limit(memory_limit().bytes);
      entry.engine.store(engine, std::memory_order_release);
    }
  }
  return *engine;
}

void set_memory_limit(std::optional<std::size_t> bytes) {
  const std::lock_guard lock(memory_limit().mutex);
  memory_limit().bytes = bytes;
  for (Engine* engine : engines()) engine->memory().set_limit(bytes);
}

std::vector<Engine*> engines() {
  std::vector<Engine*> all;
  for (std::size_t type = 0; type < device_types; ++type) {
    Engine* const engine = entry_of(static_cast<DeviceType>(type)).engine.load(std::memory_order_acquire);
    if (engine != nullptr) all.push_back(engine);
  }
  return all;
}

}  // namespace russet::runtime

namespace russet::graph {

Executor& executor_of(Device device) { return runtime::engine_of(device); }

}  // namespace russet::graph
