#include <fcntl.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

namespace russet::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_system_error(const char* action, const fs::path& path) {
  const std::string reason = std::generic_category().message(errno);
  throw FileError(fmt::format("{}: cannot {} it: {}", path.string(), action, reason));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// Opens a regular file; other kinds (a pipe would block, a folder cannot be read) are refused.
Descriptor open_to_read(const fs::path& path, std::uint64_t& size) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) throw_system_error("open", path);
  struct stat status {};
  if (::fstat(opened, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(opened);
    throw FileError(fmt::format("{}: it is not a regular file", path.string()));
  }
  size = static_cast<std::uint64_t>(status.st_size);
  return Descriptor(opened);
}

/// Marks the unfinished file that a writer of process `pid` keeps beside its target.
constexpr std::string_view part_mark = ".part-";

/// Removes what writers left that were killed in the middle.
void remove_stale_parts(const fs::path& path) {
  const std::string prefix = path.filename().string() + std::string(part_mark);
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const auto [end, status] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
    if (status != std::errc() || pid <= 0 || end == name.data() + name.size() || *end != '-') continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), ignored);
  }
}

fs::path part_of(const fs::path& path) {
  static std::atomic<std::uint64_t> writers{0};
  fs::path part = path;
  part += fmt::format("{}{}-{}", part_mark, ::getpid(), writers.fetch_add(1));
  return part;
}

void sync_folder(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  // Some file systems cannot sync a folder; the rename itself is atomic on all of them.
  if (descriptor.get() >= 0) ::fsync(descriptor.get());
}

/// Removes the unfinished file unless it became the target.
class Part {
 public:
  explicit Part(fs::path path) : path_(std::move(path)) {}
  ~Part() {
    if (!kept_) ::unlink(path_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  const fs::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

}  // namespace

MappedFile::MappedFile(const fs::path& path) {
  std::uint64_t size = 0;
  const Descriptor descriptor = open_to_read(path, size);
  if (size == 0) return;
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (memory == MAP_FAILED) throw_system_error("map", path);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void read_file(const fs::path& path, std::vector<std::byte>& content, std::uint64_t limit) {
  std::uint64_t size = 0;
  const Descriptor descriptor = open_to_read(path, size);
  if (size > limit) {
    throw FileError(fmt::format("{}: it has {} bytes, more than the {} that are read", path.string(), size, limit));
  }
  content.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(descriptor.get(), content.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("read", path);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  content.resize(done);
}

std::vector<std::byte> read_file(const fs::path& path, std::uint64_t limit) {
  std::vector<std::byte> content;
  read_file(path, content, limit);
  return content;
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void FileWriter::rewrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void write_file_atomically(const fs::path& path, const std::function<void(FileWriter&)>& fill) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw FileError(fmt::format("{}: it is a folder", path.string()));
  remove_stale_parts(path);
  Part part(part_of(path));
  {
    const Descriptor descriptor(::open(part.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) throw_system_error("write", path);
    FileWriter writer(descriptor.get(), path);
    fill(writer);
    if (::fsync(descriptor.get()) != 0) throw_system_error("write", path);
  }
  if (::rename(part.path().c_str(), path.c_str()) != 0) throw_system_error("replace", path);
  part.keep();
  sync_folder(path);
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(path, [text](FileWriter& writer) { writer.write(text); });
}

}  // namespace russet::io
