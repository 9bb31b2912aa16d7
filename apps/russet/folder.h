#pragma once
// Folders that results go to.
#include <filesystem>

namespace russet::app {

/// Makes the folder, and those that it lies in, unless it is there. Throws FileError.
void make_folder(const std::filesystem::path& folder);

}  // namespace russet::app
