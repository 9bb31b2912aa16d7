#include "base/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"

namespace russet::base {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "lock";

/// Files that were made together.
struct Entry {
  fs::file_time_type used;
  std::uint64_t bytes = 0;
  std::vector<fs::path> files;
};

std::vector<Entry> entries_in(const fs::path& folder) {
  std::error_code error;
  std::map<fs::path, Entry> named;
  for (fs::recursive_directory_iterator at(folder, error), end; at != end; at.increment(error)) {
    if (at.depth() > 0) at.disable_recursion_pending();
    const std::string name = at->path().filename().string();
    std::error_code gone;  // another process may be removing it
    if (name == lock_name || !at->is_regular_file(gone)) continue;
    const std::uint64_t bytes = at->file_size(gone);
    const fs::file_time_type used = at->last_write_time(gone);
    if (gone) continue;
    Entry& entry = named[at->path().parent_path() / name.substr(0, name.find('.'))];
    entry.used = entry.files.empty() ? used : std::max(entry.used, used);
    entry.bytes += bytes;
    entry.files.push_back(at->path());
  }
  std::vector<Entry> all;
  all.reserve(named.size());
  for (auto& [name, entry] : named) all.push_back(std::move(entry));
  return all;
}

/// Whether a folder's turn has come: looking through it takes as long as some compilations do.
bool is_turn(const fs::path& folder) {
  constexpr unsigned period = 256;
  static std::mutex mutex;
  static std::map<fs::path, unsigned> counts;
  const std::lock_guard lock(mutex);
  return counts[folder]++ % period == 0;
}

}  // namespace

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (fs::path named = variable("RUSSET_CACHE"); !named.empty()) return named;
  if (fs::path caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches / "russet";
  const fs::path home = variable("HOME");
  if (home.empty()) return {};
#ifdef __APPLE__
  return home / "Library" / "Caches" / "russet";
#else
  return home / ".cache" / "russet";
#endif
}

bool DiskCache::holds(const Path& name) const {
  std::error_code error;
  return keeps() && fs::is_regular_file(path(name), error);
}

std::optional<std::string> DiskCache::read(const Path& name, std::uint64_t most) const {
  if (!holds(name)) return {};
  std::ifstream file(path(name), std::ios::binary);
  if (!file) return {};
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path(name), error);
  if (!error && bytes > most) {
    refuse(name, fmt::format("has {} bytes, of {} at most", bytes, most));
    return {};
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void DiskCache::touch(const Path& name) const {
  std::error_code gone;
  fs::last_write_time(path(name), fs::file_time_type::clock::now(), gone);
}

void DiskCache::put(const Path& name, FunctionRef<void(const Path& fresh)> write) const {
  if (!keeps()) return;
  static std::atomic<std::uint64_t> written{0};
  const Path target = path(name);
  const Path fresh = fmt::format("{}.{}.{}", target.string(), getpid(), written++);
  std::error_code error;
  try {
    fs::create_directories(target.parent_path());
    write(fresh);
    fs::rename(fresh, target);
  } catch (const fs::filesystem_error& failed) {
    fs::remove(fresh, error);
    throw FileError(fmt::format("{} cannot be written: {}", target.string(), failed.what()));
  } catch (...) {
    fs::remove(fresh, error);
    throw;
  }
  if (is_turn(folder_)) trim();
}

void DiskCache::put(const Path& name, std::string_view content) const {
  put(name, [&](const Path& fresh) {
    std::ofstream file(fresh, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) throw FileError(fmt::format("{} cannot be written", fresh.string()));
  });
}

void DiskCache::refuse(const Path& name, std::string_view why) const {
  log_line("cache", fmt::format("{} {}, and is removed", path(name).string(), why));
  std::error_code gone;
  fs::remove(path(name), gone);
}

FileLock DiskCache::lock(const Path& folder) const {
  std::error_code error;  // the lock says what is wrong
  fs::create_directories(path(folder), error);
  return FileLock(path(folder) / lock_name);
}

void DiskCache::trim() const {
  std::vector<Entry> entries = entries_in(folder_);
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const fs::file_time_type recent = fs::file_time_type::clock::now() - grace;
  std::uint64_t left = total;
  for (Entry& entry : entries) {
    if (left <= most_bytes_ / 4 * 3 || entry.used > recent) break;
    std::sort(entry.files.begin(), entry.files.end());
    std::error_code gone;
    for (const Path& file : entry.files) fs::remove(file, gone);
    left -= entry.bytes;
  }
  static const Log log("cache");
  log("removed {} of {} bytes from {}", total - left, total, folder_.string());
}

FileLock::FileLock(const fs::path& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
  if (file_ >= 0 && flock(file_, LOCK_EX) == 0) return;
  if (file_ >= 0) close(file_);
  throw FileError(fmt::format("cannot lock {}", path.string()));
}

FileLock::~FileLock() { close(file_); }

}  // namespace russet::base
