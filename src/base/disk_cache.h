#pragma once
// DiskCache: files that can be made anew and are kept between runs: compiled kernels, what a tuner found.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace russet::base {

/// The user's folder for russet: $RUSSET_CACHE, $XDG_CACHE_HOME/russet, or the system's (~/.cache/russet,
/// ~/Library/Caches/russet). Empty if there is no home to put it in.
std::filesystem::path cache_folder();

/// Held by one process at a time, as long as it lives.
class FileLock {
 public:
  /// Throws FileError if the file cannot be made.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// A folder, and folders in it, of files with a bound on their bytes. All processes of a user share it, any of them may
/// write, and the user may delete it, at any time. Names are relative to the folder, or lie in it. Files of a folder
/// whose names agree up to the first dot are an entry: what was made together is removed together.
class DiskCache {
 public:
  using Path = std::filesystem::path;
  /// What was used more recently is never removed: someone may be about to load it.
  static constexpr std::chrono::minutes grace{10};

  /// `folder`: empty keeps nothing.
  DiskCache(Path folder, std::uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  bool keeps() const { return !folder_.empty(); }
  Path path(const Path& name) const { return folder_ / name; }
  bool holds(const Path& name) const;
  /// What a file holds; nothing if there is none. One of more than `most` bytes is refused.
  std::optional<std::string> read(const Path& name, std::uint64_t most = UINT64_MAX) const;
  /// A file counts as used now.
  void touch(const Path& name) const;
  /// `write` writes a file beside that of the name, and the file takes its place: nobody ever sees half of one. Makes
  /// the folders. Sees to the bound now and then. Throws FileError, and what `write` throws.
  void put(const Path& name, FunctionRef<void(const Path& fresh)> write) const;
  void put(const Path& name, std::string_view content) const;
  /// A file is not what it should be: it is removed, with a warning.
  void refuse(const Path& name, std::string_view why) const;
  /// A lock for all who want to change what is in a folder at once. Makes the folder. Throws FileError.
  FileLock lock(const Path& folder = {}) const;
  /// If the files are larger than the bound in all, removes the entries that were not used for longest until three
  /// quarters of it are left. Files of an entry go in the order of their names, so who finds the first has the others.
  /// Loaded files stay readable.
  void trim() const;

 private:
  Path folder_;
  std::uint64_t most_bytes_;
};

}  // namespace russet::base
