#include "cache.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "base/log.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;

const base::Log log("simulator");

/// Files of one name, whatever comes behind its first dot: they were made together and go together.
struct Family {
  fs::file_time_type used;
  std::uint64_t bytes = 0;
  std::vector<fs::path> files;
};

std::vector<Family> families_in(const fs::path& folder) {
  std::error_code error;
  std::vector<Family> all;
  for (const auto& version : fs::directory_iterator(folder, error)) {
    if (!version.is_directory(error)) continue;
    std::map<std::string, Family> named;
    for (const auto& entry : fs::directory_iterator(version.path(), error)) {
      const std::string name = entry.path().filename().string();
      if (name == "lock" || !entry.is_regular_file(error)) continue;
      std::error_code gone;  // another process may be removing it
      const std::uint64_t bytes = entry.file_size(gone);
      const fs::file_time_type used = entry.last_write_time(gone);
      if (gone) continue;
      Family& family = named[name.substr(0, name.find('.'))];
      family.used = family.files.empty() ? used : std::max(family.used, used);
      family.bytes += bytes;
      family.files.push_back(entry.path());
    }
    for (auto& [name, family] : named) all.push_back(std::move(family));
  }
  return all;
}

bool is_text(const fs::path& path) { return path.extension() == ".metal"; }

}  // namespace

fs::path cache_folder() {
  const fs::path folder = base::cache_folder();
  return folder.empty() ? fs::temp_directory_path() / "russet-simulator" : folder / "simulator";
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw FileError(fmt::format("simulated GPU: cannot write {}", path.string()));
}

void touch(const fs::path& path) {
  std::error_code gone;
  fs::last_write_time(path, fs::file_time_type::clock::now(), gone);
}

void trim(const fs::path& folder, std::uint64_t limit) {
  std::vector<Family> families = families_in(folder);
  std::uint64_t total = 0;
  for (const Family& family : families) total += family.bytes;
  if (total <= limit) return;
  std::sort(families.begin(), families.end(), [](const Family& a, const Family& b) { return a.used < b.used; });
  const fs::file_time_type recent = fs::file_time_type::clock::now() - cache_grace;
  std::uint64_t removed = 0;
  for (Family& family : families) {
    if (total - removed <= limit / 4 * 3 || family.used > recent) break;
    std::stable_partition(family.files.begin(), family.files.end(), is_text);
    std::error_code gone;
    for (const fs::path& file : family.files) fs::remove(file, gone);
    removed += family.bytes;
  }
  log("removed {} of {} bytes from {}", removed, total, folder.string());
}

}  // namespace russet::simulator
