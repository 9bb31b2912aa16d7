#include "zip_archive.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <zip.h>

namespace russet::io {
namespace {

struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

struct Error : zip_error_t {
  Error() { zip_error_init(this); }
  ~Error() { zip_error_fini(this); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;
};

constexpr zip_uint64_t known = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;

/// What the archive says of an entry, which must be stored and lie in a file of `file_bytes`.
zip_stat_t stat_of(zip_t* archive, const std::string& path, std::uint64_t file_bytes) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive, path.c_str(), ZIP_FL_ENC_RAW, &stat) != 0) throw FileError("the archive has no such entry");
  if ((stat.valid & known) != known || stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE) {
    throw FileError("the entry is compressed or encrypted, which torch.save does not do");
  }
  if (stat.size != stat.comp_size || stat.size > file_bytes) {
    throw FileError(fmt::format("the entry has {} bytes in a file of {}", stat.size, file_bytes));
  }
  return stat;
}

/// Calls `use`, whose errors get the archive and the entry in front.
template <class Use>
auto with_entry_named(const std::string& archive, const std::string& path, Use use) {
  try {
    return use();
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: {}: {}", archive, path, error.what()));
  }
}

}  // namespace

void ZipArchive::Close::operator()(zip* archive) const { zip_discard(archive); }

ZipArchive::ZipArchive(std::shared_ptr<const MappedFile> map, std::string_view name)
    : name_(name), map_(std::move(map)) {
  Error error;
  zip_source_t* const source = zip_source_buffer_create(map_->bytes().data(), map_->bytes().size(), 0, &error);
  if (source != nullptr) archive_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive_ != nullptr) return;
  zip_source_free(source);
  throw FileError(fmt::format("{}: the zip archive is damaged or truncated: {}", name_, zip_error_strerror(&error)));
}

std::string ZipArchive::find(const std::string& name) const {
  const zip_int64_t place = zip_name_locate(archive_.get(), name.c_str(), ZIP_FL_NODIR | ZIP_FL_ENC_RAW);
  return place < 0 ? "" : zip_get_name(archive_.get(), static_cast<zip_uint64_t>(place), ZIP_FL_ENC_RAW);
}

bool ZipArchive::contains(const std::string& path) const {
  return zip_name_locate(archive_.get(), path.c_str(), ZIP_FL_ENC_RAW) >= 0;
}

std::uint64_t ZipArchive::size_of(const std::string& path) const {
  return with_entry_named(name_, path, [&] { return stat_of(archive_.get(), path, map_->bytes().size()).size; });
}

void ZipArchive::read(const std::string& path, std::vector<std::byte>& content) const {
  with_entry_named(name_, path, [&] {
    const zip_stat_t stat = stat_of(archive_.get(), path, map_->bytes().size());
    const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive_.get(), stat.index, 0));
    if (entry == nullptr) throw FileError(zip_strerror(archive_.get()));
    content.resize(stat.size);
    std::size_t done = 0;
    while (done < content.size()) {
      const zip_int64_t count = zip_fread(entry.get(), content.data() + done, content.size() - done);
      if (count < 0) throw FileError(fmt::format("it is damaged: {}", zip_file_strerror(entry.get())));
      if (count == 0) throw FileError("it is truncated");
      done += static_cast<std::size_t>(count);
    }
    // libzip compares the checksum in the read that finds the end. A checksum of 0 is none: torch.save leaves them out
    // after set_crc32_options(False).
    std::byte behind{};
    if (stat.crc != 0 && zip_fread(entry.get(), &behind, 1) != 0) {
      throw FileError(fmt::format("it is damaged: {}", zip_file_strerror(entry.get())));
    }
  });
}

}  // namespace russet::io
