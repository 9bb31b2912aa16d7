// NSString, NSError, NSURL, NSArray and NSProcessInfo.
#include "device/gpu/simulator/objects/foundation.h"

#include <fmt/format.h>

namespace russet::objects {
namespace {

struct ProcessInfo final : Object {
  explicit ProcessInfo(Class& isa) : Object(isa) {}
};

struct OperatingSystemVersion {
  long major;
  long minor;
  long patch;
};

Object* string_with(Class* /*type*/, Selector, const char* text, unsigned long /*encoding*/) {
  return new_string(text);
}

const char* utf8(String* string, Selector) { return string->text.c_str(); }

Object* url_with_path(Class* /*type*/, Selector, String* path) { return autoreleased(make<Url>("NSURL", path->text)); }

Object* array_with(Class* /*type*/, Selector, Object* object) {
  auto* const array = autoreleased(make<Array>("NSArray"));
  array->objects.emplace_back(object);
  return array;
}

Object* process_info(Class* /*type*/, Selector) {
  static auto* const info = new ProcessInfo(class_named("NSProcessInfo"));
  return info;
}

OperatingSystemVersion system_version(Object*, Selector) { return {macos().major, macos().minor, 0}; }

Object* system_version_string(Object*, Selector) {
  return new_string(fmt::format("Version {}.{} (Build 0simulated)", macos().major, macos().minor));
}

}  // namespace

String* new_string(std::string text) { return autoreleased(make<String>("NSString", std::move(text))); }

void give_error(Error** place, long code, std::string text) {
  if (place != nullptr) *place = autoreleased(make<Error>("NSError", code, std::move(text)));
}

// Since when: API_AVAILABLE in Foundation's headers (NSString.h, NSError.h, NSURL.h, NSArray.h, NSProcessInfo.h) of the
// macOS SDKs; what is older than Metal itself says 10.0.
std::vector<Row> foundation_rows() {
  constexpr Version always{10, 0};
  return {
      {"NSString", "stringWithCString:encoding:", always, &string_with},
      {"NSString", "UTF8String", always, &utf8},
      {"NSError", "localizedDescription", always,
       +[](Error* error, Selector) -> Object* { return new_string(error->text); }},
      {"NSError", "code", always, +[](Error* error, Selector) { return error->code; }},
      {"NSURL", "fileURLWithPath:", always, &url_with_path},
      {"NSArray", "arrayWithObject:", always, &array_with},
      {"NSProcessInfo", "processInfo", always, &process_info},
      {"NSProcessInfo", "operatingSystemVersion", {10, 10}, &system_version},
      {"NSProcessInfo", "operatingSystemVersionString", always, &system_version_string},
  };
}

}  // namespace russet::objects
