#pragma once
// NSString, NSError, NSURL, NSArray.
#include "device/gpu/simulator/objects/object.h"

namespace russet::objects {

struct String final : Object {
  explicit String(Class& isa, std::string text = {}) : Object(isa), text(std::move(text)) {}
  std::string text;
};

struct Error final : Object {
  Error(Class& isa, long code, std::string text) : Object(isa), code(code), text(std::move(text)) {}
  long code;
  std::string text;
};

struct Url final : Object {
  explicit Url(Class& isa, std::string path = {}) : Object(isa), path(std::move(path)) {}
  std::string path;
};

struct Array final : Object {
  explicit Array(Class& isa) : Object(isa) {}
  std::vector<Held<Object>> objects;
};

/// A string that the innermost pool releases.
String* new_string(std::string text);
/// Puts an autoreleased error where the caller asked for one.
void give_error(Error** place, long code, std::string text);

}  // namespace russet::objects
