#include "folder.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::app {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(fmt::format("{}: {}", folder.string(), error.message()));
}

}  // namespace russet::app
