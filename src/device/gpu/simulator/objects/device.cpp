// MTLDevice, MTLCaptureManager, and the functions that Metal exports.
#include <fmt/format.h>
#include <russet/error.h>

#include <filesystem>

#include "device/gpu/metal/hooks.h"
#include "device/gpu/simulator/objects/block.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::objects {
namespace {

constexpr long family_apple1 = 1001;
constexpr long family_metal3 = 5001;

bool supports_family(Device*, Selector, long family) {
  return (family >= family_apple1 && family < family_apple1 + settings().family) || family == family_metal3;
}

unsigned long group_memory(Device*, Selector) { return 32768; }

Size group_threads(Device*, Selector) {
  const unsigned long most = simulator::options().max_threads;
  return {most, most, most};
}

struct CaptureDescriptor final : Object {
  explicit CaptureDescriptor(Class& isa) : Object(isa) {}
  Held<Object> captured;
  long destination = 1;
  Held<Url> url;
};

constexpr long to_document = 2;  // MTLCaptureDestinationGPUTraceDocument

struct CaptureManager final : Object {
  explicit CaptureManager(Class& isa) : Object(isa) {}
  bool capturing = false;
};

Object* shared_manager(Class*, Selector) {
  static auto* const manager = new CaptureManager(class_named("MTLCaptureManager"));
  return manager;
}

// Apple's answers to the same mistakes are errors too (MTLCaptureError).
bool start_capture(CaptureManager* manager, Selector, CaptureDescriptor* descriptor, Error** error) {
  const auto refuse = [&](long code, std::string text) {
    give_error(error, code, std::move(text));
    return false;
  };
  if (manager->capturing) return refuse(2, "a capture is already running");
  if (!descriptor->captured) return refuse(3, "nothing to capture was named");
  if (descriptor->destination != to_document || !descriptor->url) return refuse(3, "no file was named");
  if (!descriptor->url->path.ends_with(".gputrace")) return refuse(3, "the file's name must end with .gputrace");
  if (std::filesystem::exists(descriptor->url->path)) return refuse(3, "the file exists");
  manager->capturing = true;
  statistics().captures.fetch_add(1);
  return true;
}

}  // namespace

Settings& settings() {
  static auto* const all = new Settings;
  return *all;
}

Statistics& statistics() {
  static auto* const counts = new Statistics;
  return *counts;
}

Device& system_device() {
  static Device* const device = [] {
    auto* const made = make<Device>("MTLDevice");
    made->isa->live.fetch_sub(1);  // it stays
    return made;
  }();
  return *device;
}

// Since when: API_AVAILABLE in MTLDevice.h and MTLCaptureManager.h of the macOS SDKs 11.3 and 15.0.
std::vector<Row> device_rows() {
  return {
      {"MTLDevice", "name", {10, 11}, +[](Device*, Selector) -> Object* { return new_string(settings().name); }},
      {"MTLDevice", "supportsFamily:", {10, 15}, &supports_family},
      {"MTLDevice", "hasUnifiedMemory", {10, 15}, +[](Device*, Selector) { return true; }},
      {"MTLDevice",
       "maxBufferLength",
       {10, 14},
       +[](Device*, Selector) { return static_cast<unsigned long>(settings().max_buffer_length); }},
      {"MTLDevice",
       "recommendedMaxWorkingSetSize",
       {10, 12},
       +[](Device*, Selector) { return static_cast<unsigned long>(settings().working_set); }},
      {"MTLDevice", "maxThreadgroupMemoryLength", {10, 13}, &group_memory},
      {"MTLDevice", "maxThreadsPerThreadgroup", {10, 11}, &group_threads},
      {"MTLDevice", "setShouldMaximizeConcurrentCompilation:", {13, 3}, +[](Device*, Selector, bool) {}},
      {"MTLDevice", "newFence", {10, 13}, +[](Device*, Selector) -> Object* { return make<Fence>("MTLFence"); }},
      {"MTLCaptureManager", "sharedCaptureManager", {10, 13}, &shared_manager},
      {"MTLCaptureManager",
       "supportsDestination:",
       {10, 15},
       +[](CaptureManager*, Selector, long destination) { return destination == to_document; }},
      {"MTLCaptureManager", "startCaptureWithDescriptor:error:", {10, 15}, &start_capture},
      {"MTLCaptureManager",
       "stopCapture",
       {10, 13},
       +[](CaptureManager* manager, Selector) { manager->capturing = false; }},
      {"MTLCaptureDescriptor", "alloc", {10, 15}, &alloc<CaptureDescriptor>},
      {"MTLCaptureDescriptor", "init", {10, 15}, &init},
      {"MTLCaptureDescriptor",
       "setCaptureObject:",
       {10, 15},
       +[](CaptureDescriptor* descriptor, Selector, Object* object) { descriptor->captured = Held<Object>(object); }},
      {"MTLCaptureDescriptor",
       "setDestination:",
       {10, 15},
       +[](CaptureDescriptor* descriptor, Selector, long destination) { descriptor->destination = destination; }},
      {"MTLCaptureDescriptor",
       "setOutputURL:",
       {10, 15},
       +[](CaptureDescriptor* descriptor, Selector, Url* url) { descriptor->url = Held<Url>(url); }},
  };
}

}  // namespace russet::objects

// What metal-cpp links to.
extern "C" {

void* MTLCreateSystemDefaultDevice() {
  russet::objects::connect_hooks();
  russet::objects::Device& device = russet::objects::system_device();
  russet::objects::retain(&device);
  return &device;
}

void* MTLCopyAllDevices() { throw russet::InternalError("the stand-in has one device: MTLCreateSystemDefaultDevice"); }
void* MTLCopyAllDevicesWithObserver(void*, void*) { return MTLCopyAllDevices(); }
void MTLRemoveDeviceObserver(void*) { MTLCopyAllDevices(); }
}
