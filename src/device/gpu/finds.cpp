#include "device/gpu/finds.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/version.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/digest.h"
#include "base/log.h"
#include "device/gpu/kernels.h"

namespace russet::gpu {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_finds = 4096;
constexpr std::size_t most_bytes = std::size_t{4} << 20;  // of a file
constexpr std::uint64_t all_bytes = 16 * most_bytes;

/// A digest of all hand-written kernels and russet's version: finds of another digest are not used.
std::string version_of_kernels() {
  std::uint64_t state = base::digest(version_string);
  for (const KernelFile& file : kernel_files()) state = base::digest(file.text, base::digest(file.name, state));
  return fmt::format("{:016x}", state);
}

std::optional<Find> find_of(const Json& entry) {
  if (!entry.is_object() || !entry.contains("tile") || !entry["tile"].is_array() || entry["tile"].size() != 3)
    return {};
  for (const Json& side : entry["tile"]) {
    if (!side.is_number_unsigned() || side.get<std::uint64_t>() > 1024) return {};
  }
  const auto number = [&](const char* name) {
    return entry.contains(name) && entry[name].is_number() ? entry[name].get<double>() : 0;
  };
  const auto side = [&](std::size_t i) { return entry["tile"][i].get<int>(); };
  return Find{{side(0), side(1), side(2)}, number("seconds"), number("table_seconds")};
}

}  // namespace

Finds::Finds(const std::filesystem::path& folder, const Properties& gpu)
    : gpu_(gpu.name), system_(gpu.system), cache_(gpu_.empty() ? std::filesystem::path() : folder, all_bytes) {
  if (!cache_.keeps()) return;
  kernels_ = version_of_kernels();
  const std::uint64_t owner = base::digest(fmt::format("{}|{}|{}", gpu_, system_, kernels_));
  name_ = fmt::format("tiles-{:016x}.json", owner);
  finds_ = read();
}

const Find* Finds::find(const std::string& key) const {
  const auto found = finds_.find(key);
  return found == finds_.end() ? nullptr : &found->second;
}

bool Finds::full() const { return finds_.size() >= most_finds; }

Finds::Map Finds::read() const {
  const std::optional<std::string> text = cache_.read(name_, most_bytes);
  if (!text) return {};
  const Json json = Json::parse(*text, nullptr, false);
  const auto says = [&](const char* name, const std::string& value) {
    return json.contains(name) && json[name].is_string() && json[name].get<std::string>() == value;
  };
  const auto refuse = [&](std::string_view why) {
    cache_.refuse(name_, why);
    return Map();
  };
  if (!json.is_object() || !json.contains("tiles") || !json["tiles"].is_object()) return refuse("cannot be read");
  if (!says("gpu", gpu_) || !says("system", system_) || !says("kernels", kernels_)) return refuse("is another GPU's");
  Map finds;
  for (const auto& [key, entry] : json["tiles"].items()) {
    const std::optional<Find> found = find_of(entry);
    if (!found) return refuse("holds what is no tile");
    if (finds.size() < most_finds) finds.emplace(key, *found);
  }
  cache_.touch(name_);
  return finds;
}

std::string Finds::text() const {
  Json tiles = Json::object();
  for (const auto& [key, found] : finds_) {
    tiles[key] = {{"tile", {found.tile.rows, found.tile.columns, found.tile.depth}},
                  {"seconds", found.seconds},
                  {"table_seconds", found.table_seconds}};
  }
  const Json json{{"gpu", gpu_}, {"system", system_}, {"kernels", kernels_}, {"tiles", tiles}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

void Finds::add(const std::string& key, const Find& found) {
  finds_[key] = found;
  if (!cache_.keeps()) return;
  try {
    const base::FileLock lock = cache_.lock();
    finds_.merge(read());
    cache_.put(name_, text());
  } catch (const std::exception& error) {
    base::log_line("kernels", fmt::format("what was found about tiles is not kept: {}", error.what()));
  }
}

}  // namespace russet::gpu
