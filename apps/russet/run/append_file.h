#pragma once
// A file that grows by whole records: what logs are written with.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace russet::app {

class AppendFile {
 public:
  /// Opens or makes the file; what it holds beyond `bytes` is cut off. Throws FileError, also if it holds less.
  AppendFile(const std::filesystem::path& path, std::uint64_t bytes);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Keeps the record for the next flush.
  void add(std::string_view record) { pending_ += record; }
  /// Hands all records to the system. Throws FileError; nothing of them is in the file then (the disk is full), and
  /// they are kept.
  void flush();
  /// flush, and forces them to the disk. Returns the length of the file.
  std::uint64_t sync();

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  std::string pending_;
};

}  // namespace russet::app
