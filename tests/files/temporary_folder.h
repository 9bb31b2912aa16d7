#pragma once
#include <russet/error.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace russet::files {

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "russet-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw FileError(pattern + ": cannot make a folder for the test");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace russet::files
