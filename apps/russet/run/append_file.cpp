#include "run/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace russet::app {
namespace {

[[noreturn]] void fail(const std::string& name) { throw FileError(fmt::format("{}: {}", name, std::strerror(errno))); }

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path, std::uint64_t bytes) : name_(path.string()), bytes_(bytes) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(name_);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(name_);
  if (static_cast<std::uint64_t>(status.st_size) < bytes) {
    ::close(descriptor_);
    throw FileError(fmt::format("{}: the checkpoint was written when it held {} bytes, now it holds {}", name_, bytes,
                                status.st_size));
  }
  const auto end = static_cast<off_t>(bytes);
  if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail(name_);
}

AppendFile::~AppendFile() {
  try {
    flush();
  } catch (const FileError&) {
    // A destructor can tell nobody; whoever needs to know calls sync().
  }
  ::close(descriptor_);
}

void AppendFile::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      const auto end = static_cast<off_t>(bytes_);
      if (::ftruncate(descriptor_, end) == 0) ::lseek(descriptor_, end, SEEK_SET);
      errno = reason;
      fail(name_);
    }
    done += static_cast<std::size_t>(written);
  }
  bytes_ += pending_.size();
  pending_.clear();
}

std::uint64_t AppendFile::sync() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(name_);
  return bytes_;
}

}  // namespace russet::app
