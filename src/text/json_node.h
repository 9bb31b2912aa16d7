#pragma once
// JsonNode: a value of an untrusted JSON file, with its path, so that an error can say where it is.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace russet::text {

/// Parses a file. Throws FileError if it is no JSON, has a key twice, or is nested deeper than a tokenizer's files are.
nlohmann::json parse_json(std::span<const std::byte> file, std::string_view name);

class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string_view file) : value_(value), file_(file) {}

  bool is_null() const { return value_.is_null(); }
  bool is_zero() const { return value_.is_number() && value_ == 0; }
  bool is_text() const { return value_.is_string(); }
  bool has(std::string_view key) const { return value_.is_object() && value_.contains(std::string(key)); }

  // Each throws FileError, with the path to the value, for a value of another kind.
  /// Of an object.
  JsonNode at(std::string_view key) const;
  /// The same; null where there is none.
  JsonNode get(std::string_view key) const;
  /// Of a list.
  JsonNode at(std::size_t index) const;
  std::size_t size() const;
  const nlohmann::json& object() const;
  const std::string& text() const;
  std::int64_t whole(std::int64_t largest) const;
  bool flag() const;
  bool flag_or(bool usual) const { return is_null() ? usual : flag(); }

  [[noreturn]] void fail(std::string_view reason) const;

 private:
  JsonNode(const nlohmann::json& value, const JsonNode& parent, std::string_view key);
  const nlohmann::json& value_;
  std::string_view file_;
  std::string path_;
};

}  // namespace russet::text
