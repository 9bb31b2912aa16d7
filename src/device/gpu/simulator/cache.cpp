#include "cache.h"

namespace russet::simulator {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const fs::path folder = base::cache_folder();
  return folder.empty() ? fs::temp_directory_path() / "russet-simulator" : folder / "simulator";
}

base::DiskCache cache(std::uint64_t limit) { return {cache_folder(), limit}; }

}  // namespace russet::simulator
