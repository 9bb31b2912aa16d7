#include "base/cache_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

namespace russet::base {

namespace fs = std::filesystem;

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

void keep_newest(const fs::path& folder, std::string_view extension, std::size_t count) {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == extension) files.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  if (files.size() <= count) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i < files.size() - count; ++i) fs::remove(files[i].second, ignored);
}

fs::path name_beside(const fs::path& path) {
  static std::atomic<std::uint64_t> written{0};
  return fmt::format("{}.{}.{}", path.string(), getpid(), written++);
}

FileLock::FileLock(const fs::path& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
  if (file_ >= 0 && flock(file_, LOCK_EX) == 0) return;
  if (file_ >= 0) close(file_);
  throw FileError(fmt::format("cannot lock {}", path.string()));
}

FileLock::~FileLock() { close(file_); }

}  // namespace russet::base
