#include "run/model_config.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>

#include <nlohmann/json.hpp>

namespace russet::app {
namespace {

using nlohmann::json;

json parse(const std::filesystem::path& path) {
  constexpr std::uint64_t max_bytes = std::uint64_t{16} << 20;
  const std::vector<std::byte> file = io::read_file(path, max_bytes);
  const auto* const text = reinterpret_cast<const char*>(file.data());
  json object = json::parse(text, text + file.size(), nullptr, false);
  if (!object.is_object()) throw FileError(fmt::format("{}: it is no JSON object", path.string()));
  return object;
}

}  // namespace

std::map<std::string, std::int64_t> read_model_config(const std::filesystem::path& path,
                                                      const models::ModelSpec& spec) {
  if (spec.config.empty()) throw ValueError(fmt::format("--config: {} has one size only (and --width)", spec.name));
  const json object = parse(path);
  for (const auto& [name, value] : spec.config_fixed) {
    if (!object.contains(name) || object[name] == json::parse(value)) continue;
    throw FileError(fmt::format("{}: {} is {}; {} has {}", path.string(), name, object[name].dump(), spec.name, value));
  }
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& name : spec.config) {
    if (!object.contains(name)) continue;
    constexpr std::int64_t largest = 1 << 24;
    const json& value = object[name];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest) {
      throw FileError(
          fmt::format("{}: {} is {}, not a whole number from 0 to {}", path.string(), name, value.dump(), largest));
    }
    sizes.emplace(name, value.get<std::int64_t>());
  }
  if (sizes.empty()) throw FileError(fmt::format("{}: it has none of the sizes of {}", path.string(), spec.name));
  return sizes;
}

}  // namespace russet::app
