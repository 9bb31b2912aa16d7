#include "device/gpu/finds.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/version.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cache_folder.h"
#include "base/digest.h"
#include "base/log.h"
#include "device/gpu/kernels.h"

namespace russet::gpu {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_finds = 4096;
constexpr std::size_t most_bytes = std::size_t{4} << 20;  // of a file
constexpr std::size_t kept_files = 16;

/// Changes with the hand-written kernels, and with each version of russet.
std::string version_of_kernels() {
  std::uint64_t state = base::digest(version_string);
  for (const KernelText& file : kernel_texts()) state = base::digest(file.text, base::digest(file.name, state));
  return fmt::format("{:016x}", state);
}

void warn(const std::filesystem::path& path, std::string_view what) {
  base::log_line("kernels", fmt::format("what was found about tiles in {} {}", path.string(), what));
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

Finds::Finds(const std::filesystem::path& folder, const Properties& gpu) : gpu_(gpu.name), system_(gpu.system) {
  if (folder.empty() || gpu_.empty()) return;
  kernels_ = version_of_kernels();
  const std::uint64_t owner = base::digest(fmt::format("{}|{}|{}", gpu_, system_, kernels_));
  path_ = folder / fmt::format("tiles-{:016x}.json", owner);
  finds_ = read();
}

const Find* Finds::find(const std::string& key) const {
  const auto found = finds_.find(key);
  return found == finds_.end() ? nullptr : &found->second;
}

bool Finds::full() const { return finds_.size() >= most_finds; }

Finds::Map Finds::read() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return {};
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const Json json = text.size() > most_bytes ? Json() : Json::parse(text, nullptr, false);
  const auto says = [&](const char* name, const std::string& value) {
    return json.contains(name) && json[name].is_string() && json[name].get<std::string>() == value;
  };
  if (!json.is_object() || !json.contains("tiles") || !json["tiles"].is_object()) {
    warn(path_, "cannot be read, and is ignored");
    return {};
  }
  if (!says("gpu", gpu_) || !says("system", system_) || !says("kernels", kernels_)) {
    warn(path_, "is another GPU's, and is ignored");
    return {};
  }
  Map finds;
  for (const auto& [key, entry] : json["tiles"].items()) {
    const std::optional<Find> found = find_of(entry);
    if (!found) {
      warn(path_, "holds what is no tile, and is ignored");
      return {};
    }
    if (finds.size() < most_finds) finds.emplace(key, *found);
  }
  return finds;
}

void Finds::write() const {
  Json tiles = Json::object();
  for (const auto& [key, found] : finds_) {
    tiles[key] = {{"tile", {found.tile.rows, found.tile.columns, found.tile.depth}},
                  {"seconds", found.seconds},
                  {"table_seconds", found.table_seconds}};
  }
  const Json json{{"gpu", gpu_}, {"system", system_}, {"kernels", kernels_}, {"tiles", tiles}};
  const std::filesystem::path part = base::name_beside(path_);
  {
    std::ofstream file(part, std::ios::binary);
    file << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) throw FileError(fmt::format("{} cannot be written", part.string()));
  }
  std::filesystem::rename(part, path_);
}

void Finds::add(const std::string& key, const Find& found) {
  if (path_.empty()) {
    finds_[key] = found;
    return;
  }
  try {
    std::filesystem::create_directories(path_.parent_path());
    const base::FileLock lock(path_.parent_path() / "lock");
    finds_.merge(read());
    finds_[key] = found;
    write();
    base::keep_newest(path_.parent_path(), ".json", kept_files);
  } catch (const std::exception& error) {
    finds_[key] = found;
    warn(path_, fmt::format("is not kept: {}", error.what()));
  }
}

}  // namespace russet::gpu
