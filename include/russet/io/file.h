#pragma once
// Files: reading whole, mapping into memory, and writing so that the old or the new content is always there.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace russet::io {

/// A regular file mapped into memory, read-only. The bytes live as long as the object. Do not shorten the file
/// meanwhile: replace it (write_file_atomically does).
class MappedFile {
 public:
  /// Throws FileError if the file cannot be opened or is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Replaces `content` by the whole file, whose memory is used again. Throws FileError, also beyond `limit` bytes.
void read_file(const std::filesystem::path& path, std::vector<std::byte>& content,
               std::uint64_t limit = std::uint64_t{1} << 40);
std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t limit = std::uint64_t{1} << 40);

/// Where the content of a new file goes. Every function throws FileError.
class FileWriter {
 public:
  FileWriter(int descriptor, const std::filesystem::path& path) : descriptor_(descriptor), path_(path) {}
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Replaces bytes that have been written.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);

 private:
  int descriptor_;
  const std::filesystem::path& path_;
};

/// Writes a file beside `path`, forces it to the disk and renames it: whenever the process or the machine dies, `path`
/// holds the old or the new content, whole. When `fill` throws, nothing changes. Throws FileError.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(FileWriter&)>& fill);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace russet::io
