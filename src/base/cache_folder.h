#pragma once
// Where what can be made anew is kept between runs: compiled kernels, what a tuner found.
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace russet::base {

/// The user's folder for russet: $RUSSET_CACHE, $XDG_CACHE_HOME/russet, or the system's (~/.cache/russet,
/// ~/Library/Caches/russet). Empty if there is no home to put it in.
std::filesystem::path cache_folder();

/// Of the files in a folder that end with `extension`, removes all but those used last. Errors are ignored: another
/// process may do the same.
void keep_newest(const std::filesystem::path& folder, std::string_view extension, std::size_t count);

/// A name beside `path` for what is to take its place by being renamed: no two writers have the same.
std::filesystem::path name_beside(const std::filesystem::path& path);

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

}  // namespace russet::base
