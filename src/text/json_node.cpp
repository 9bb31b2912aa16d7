#include "text/json_node.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <unordered_set>
#include <vector>

namespace russet::text {
namespace {

using nlohmann::json;
using Event = json::parse_event_t;

const json null_value;

}  // namespace

json parse_json(std::span<const std::byte> file, std::string_view name) {
  constexpr int max_depth = 16;
  std::vector<std::unordered_set<std::string>> keys(max_depth + 1);
  const auto check = [&](int depth, Event event, const json& value) {
    if (depth >= max_depth) throw FileError(fmt::format("{}: it is nested deeper than {} levels", name, max_depth));
    auto& seen = keys[static_cast<std::size_t>(depth)];
    if (event == Event::object_start) keys[static_cast<std::size_t>(depth) + 1].clear();
    if (event == Event::key && !seen.insert(value.get<std::string>()).second) {
      throw FileError(fmt::format("{}: the key {} is there twice", name, value.dump()));
    }
    return true;
  };
  try {
    const auto* const text = reinterpret_cast<const char*>(file.data());
    return json::parse(text, text + file.size(), check);
  } catch (const json::parse_error& error) {
    throw FileError(fmt::format("{}: it is no JSON from byte {} on", name, error.byte));
  } catch (const json::exception&) {
    throw FileError(fmt::format("{}: it has a number that is too large", name));
  }
}

JsonNode::JsonNode(const json& value, const JsonNode& parent, std::string_view key)
    : value_(value),
      file_(parent.file_),
      path_(parent.path_.empty() ? std::string(key) : parent.path_ + "." + std::string(key)) {}

void JsonNode::fail(std::string_view reason) const {
  throw FileError(path_.empty() ? fmt::format("{}: {}", file_, reason)
                                : fmt::format("{}: {}: {}", file_, path_, reason));
}

const json& JsonNode::object() const {
  if (!value_.is_object()) fail("an object is expected here");
  return value_;
}

JsonNode JsonNode::at(std::string_view key) const {
  if (!object().contains(std::string(key))) fail(fmt::format("there is no \"{}\"", key));
  return {*value_.find(std::string(key)), *this, key};
}

JsonNode JsonNode::get(std::string_view key) const {
  return object().contains(std::string(key)) ? at(key) : JsonNode(null_value, *this, key);
}

std::size_t JsonNode::size() const {
  if (!value_.is_array()) fail("a list is expected here");
  return value_.size();
}

JsonNode JsonNode::at(std::size_t index) const {
  if (index >= size()) fail(fmt::format("it has {} entries; {} are expected", size(), index + 1));
  return {value_[index], *this, std::to_string(index)};
}

const std::string& JsonNode::text() const {
  if (!value_.is_string()) fail("a string is expected here");
  return value_.get_ref<const std::string&>();
}

std::int64_t JsonNode::whole(std::int64_t largest) const {
  const bool fits = value_.is_number_unsigned() && value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  if (!fits) fail(fmt::format("a whole number from 0 to {} is expected here", largest));
  return value_.get<std::int64_t>();
}

bool JsonNode::flag() const {
  if (!value_.is_boolean()) fail("true or false is expected here");
  return value_.get<bool>();
}

}  // namespace russet::text
