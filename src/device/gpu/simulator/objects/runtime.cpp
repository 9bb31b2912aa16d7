// Classes, selectors and the table of messages.
#include "device/gpu/simulator/objects/object.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/gpu/simulator/machine.h"
#include "device/gpu/simulator/objects/zombie.h"

namespace russet::objects {
namespace {

// Since when macOS has a class: API_AVAILABLE in the headers of Apple's macOS SDKs (10.15, 11.3 and 15.0).
constexpr ClassRow classes[] = {
    {"NSObject", nullptr, {10, 0}},
    {"NSAutoreleasePool", "NSObject", {10, 0}},
    {"NSString", "NSObject", {10, 0}},
    {"NSArray", "NSObject", {10, 0}},
    {"NSError", "NSObject", {10, 0}},
    {"NSURL", "NSObject", {10, 0}},
    {"NSProcessInfo", "NSObject", {10, 0}},
    {"MTLDevice", "NSObject", {10, 11}},
    {"MTLCompileOptions", "NSObject", {10, 11}},
    {"MTLLibrary", "NSObject", {10, 11}},
    {"MTLFunction", "NSObject", {10, 11}},
    {"MTLComputePipelineDescriptor", "NSObject", {10, 11}},
    {"MTLComputePipelineState", "NSObject", {10, 11}},
    {"MTLBinaryArchiveDescriptor", "NSObject", {11, 0}},
    {"MTLBinaryArchive", "NSObject", {11, 0}},
    {"MTLBuffer", "NSObject", {10, 11}},
    {"MTLResidencySetDescriptor", "NSObject", {15, 0}},
    {"MTLResidencySet", "NSObject", {15, 0}},
    {"MTLCommandQueue", "NSObject", {10, 11}},
    {"MTLCommandBuffer", "NSObject", {10, 11}},
    {"MTLComputeCommandEncoder", "NSObject", {10, 11}},
    {"MTLFence", "NSObject", {10, 13}},
    {"MTLCaptureManager", "NSObject", {10, 13}},
    {"MTLCaptureDescriptor", "NSObject", {10, 15}},
};

struct Selectors {
  std::mutex mutex;
  std::unordered_map<std::string_view, Selector> known;
  std::deque<std::string> names;
};

/// The classes by name, each with the class of its class methods. Nothing of this is ever destroyed.
struct Classes {
  std::map<std::string, Class*, std::less<>> by_name;

  Classes() {
    for (const ClassRow& row : classes) {
      Class* const parent = row.parent == nullptr ? nullptr : by_name.at(row.parent);
      auto* const metaclass = static_cast<Class*>(::operator new(sizeof(Class)));
      new (metaclass)
          Class(fmt::format("{} (class)", row.name), parent == nullptr ? nullptr : parent->isa, metaclass, row.since);
      by_name[row.name] = new Class(row.name, parent, metaclass, row.since);
    }
    for (const Row& row : table()) {
      Class* const type = by_name.at(row.type);
      Class* const owner = row.kind == Row::Kind::class_method ? type->isa : type;
      owner->methods[selector_named(row.message)] = {row.function, std::string(row.types),
                                                     std::max(row.since, type->since)};
    }
  }
};

Classes& all_classes() {
  static auto* const classes = new Classes;
  return *classes;
}

std::string message_name(const Object& object, Selector selector) {
  return fmt::format("[{} {}]", object.isa->name, selector);
}

Version parse(std::string_view text) {
  Version version{15, 0};
  const char* const end = text.data() + text.size();
  char* rest = nullptr;
  const long major = std::strtol(text.data(), &rest, 10);
  if (rest == text.data() || major < 10) return version;
  version = {static_cast<int>(major), 0};
  if (rest < end && *rest == '.') version.minor = static_cast<int>(std::strtol(rest + 1, nullptr, 10));
  return version;
}

}  // namespace

Version macos() {
  static const Version version = [] {
    const char* const text = std::getenv("RUSSET_SIMULATOR_MACOS");
    return parse(text == nullptr ? "" : text);
  }();
  return version;
}

Selector selector_named(std::string_view name) {
  static auto* const selectors = new Selectors;
  const std::lock_guard lock(selectors->mutex);
  const auto found = selectors->known.find(name);
  if (found != selectors->known.end()) return found->second;
  const std::string& kept = selectors->names.emplace_back(name);
  return selectors->known.emplace(kept, kept.c_str()).first->second;
}

const std::vector<Row>& table() {
  static const auto* const rows = [] {
    auto* const all = new std::vector<Row>;
    for (const auto part :
         {object_rows, foundation_rows, device_rows, library_rows, buffer_rows, queue_rows, encoder_rows}) {
      for (const Row& row : part()) all->push_back(row);
    }
    return all;
  }();
  return *rows;
}

const Method* Class::find(Selector selector) const {
  for (const Class* type = this; type != nullptr; type = type->parent) {
    const auto found = type->methods.find(selector);
    if (found != type->methods.end()) return &found->second;
  }
  return nullptr;
}

Class& class_named(std::string_view name) {
  const auto found = all_classes().by_name.find(name);
  if (found == all_classes().by_name.end()) {
    throw InternalError(fmt::format("the stand-in for Metal's objects has no class {}", name));
  }
  return *found->second;
}

long live_objects(std::string_view class_name) { return class_named(class_name).live.load(); }

std::vector<std::string> live_objects() {
  std::vector<std::string> result;
  for (const auto& [name, type] : all_classes().by_name) {
    if (type->live.load() > 0) result.push_back(fmt::format("{}: {}", name, type->live.load()));
  }
  return result;
}

void report(std::string_view check, std::string message) {
  simulator::add_report({std::string(check), "", std::move(message)});
}

Function answer(const void* self, Selector selector, std::string_view types) {
  if (self == nullptr) return nullptr;
  const Object& object = *static_cast<const Object*>(self);
  if (const std::string* const was = zombie_class(object)) {
    throw InternalError(fmt::format("[{} {}] was sent to an object that had been deallocated", *was, selector));
  }
  const Method* const method = object.isa->find(selector);
  if (method == nullptr) {
    throw InternalError(fmt::format("{} is not in the table of messages that the stand-in answers (objects/*.cpp)",
                                    message_name(object, selector)));
  }
  if (method->since > macos()) {
    throw InternalError(fmt::format("{} came with macOS {}.{}, and this is macOS {}.{}", message_name(object, selector),
                                    method->since.major, method->since.minor, macos().major, macos().minor));
  }
  if (method->types != types) {
    throw InternalError(fmt::format("{} takes the types {} and was sent with {}", message_name(object, selector),
                                    method->types, types));
  }
  return method->function;
}

}  // namespace russet::objects

using namespace russet::objects;

extern "C" {

/// What metal-cpp asks while the library is loaded. A class that this macOS lacks is nil, as there.
void* objc_lookUpClass(const char* name) {
  const auto& known = all_classes().by_name;
  const auto found = known.find(std::string_view(name));
  return found == known.end() || found->second->since > macos() ? nullptr : found->second;
}

void* objc_getProtocol(const char* /*name*/) { return nullptr; }

const char* sel_registerName(const char* name) { return selector_named(name); }
}
