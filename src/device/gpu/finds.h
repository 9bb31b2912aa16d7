#pragma once
// What a tuner found out of a GPU, kept on disk.
#include <filesystem>
#include <map>
#include <string>

#include "base/disk_cache.h"
#include "device/gpu/launch.h"
#include "device/gpu/templates/tiles.h"

namespace russet::gpu {

/// The fastest tile of a contraction, what it took, and what the table's took.
struct Find {
  Tile tile;
  double seconds = 0;
  double table_seconds = 0;
};

/// The finds of a GPU, a system and a version of the kernels' text, in a file of their own that names all three: those
/// of others are not read. A file that is not what it should be is removed with a warning. Any
/// number of processes may add finds at once. Not thread-safe.
class Finds {
 public:
  /// `folder`: empty keeps nothing.
  Finds(const std::filesystem::path& folder, const Properties& gpu);

  /// nullptr if there is none.
  const Find* find(const std::string& key) const;
  /// Adds to what is on disk by now. A failure is a warning.
  void add(const std::string& key, const Find& found);
  /// No more fit.
  bool full() const;

  std::filesystem::path path() const { return cache_.path(name_); }

 private:
  using Map = std::map<std::string, Find>;
  Map read() const;
  std::string text() const;

  std::string gpu_, system_, kernels_;
  base::DiskCache cache_;
  std::string name_;  // of the file
  Map finds_;
};

}  // namespace russet::gpu
